printf "1
2
" | sh sum.sh | grep -qx 3
sh sum.sh < /dev/null | grep -qx 0 && echo passed
