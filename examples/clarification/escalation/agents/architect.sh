question=$(cat)
case $question in
*"schema of production"*) echo "Roll it out behind a flag, table by table." ;;
*) echo "Keep both databases until the end of the quarter." ;;
esac
