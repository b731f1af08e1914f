# An engineer whom no answer satisfies, until a human decides.
task=$(cat)
case $task in
*"Migrate to PostgreSQL everywhere"*)
  echo '{"reconcile": 1, "result": "done", "resolution": "Decided by a human. Proceeding with PostgreSQL only."}'; exit ;;
*"Roll it out behind a flag"*) question="Who owns that flag, and when may it be removed again?" ;;
*"Keep both databases"*) question="How is the schema of production migrated while both are in use?" ;;
*) question="ADR-43 says PostgreSQL but codebase uses SQLite. Dual-layer or migrate?" ;;
esac
echo '{"reconcile": 1, "clarification": {"to": "architect", "topic": "Database migration", "question": "'"$question"'"}}'
