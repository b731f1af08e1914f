# An architect that answers: the question comes on stdin with what was said before, the answer goes to stdout.
question=$(cat)
case $question in
*"connection pooling"*) echo "Config-driven. Pool settings in appsettings.json per environment." ;;
*) echo "Use repository pattern with adapter. SQLite for dev, PostgreSQL for prod." ;;
esac
