api_key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
