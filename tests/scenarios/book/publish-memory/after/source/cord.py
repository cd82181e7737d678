def read(cord):
    return list(cord)
