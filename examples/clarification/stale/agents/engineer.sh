task=$(cat)
case $task in
*"SQLite for dev, PostgreSQL for prod"*) echo '{"reconcile": 1, "result": "done", "resolution": "Clear. Proceeding."}' ;;
*) echo '{"reconcile": 1, "clarification": {"to": "architect", "topic": "Database abstraction layer approach",
     "question": "ADR-44 says PostgreSQL but codebase uses SQLite. Dual-layer or migrate?"}}' ;;
esac
