# A small program in the place of an agent: it reads its task, changes files, and prints its result as JSON.
task=$(cat)
mkdir -p docs

case $RECONCILE_NODE in
requirements)
  printf '# Requirements\n\nThe program greets a person by name.\n' > docs/requirements.md
  echo '{"requirements": 1}' ;;
design)
  printf '# Decision\n\nThe name is the first argument.\n\n# Consequences\n\nNone.\n' > docs/design.md
  echo '{"design": "the name is the first argument"}' ;;
implement)
  case $task in
  *'is among the results above'*) # the review sent it back
    printf 'echo "Hello, ${1:-world}!"\n' > greet.sh
    echo '{"changed": "greet.sh"}' ;;
  *'Only the first argument.'*) # the architect has answered
    printf 'echo "Hello, $1!"\n' > greet.sh
    echo '{"changed": "greet.sh"}' ;;
  *) echo '{"reconcile": 1, "status": "needs_clarification", "clarification": {"to": "architect", "topic": "Arguments", "question": "What about a second argument?", "blocking": true}}' ;;
  esac ;;
review)
  if [ "$(sh greet.sh)" = "Hello, world!" ] && [ "$(sh greet.sh Ann)" = "Hello, Ann!" ]; then
    echo '{"verdict": "accept"}'
  else
    echo '{"verdict": "rework", "why": "without a name it does not greet the world"}'
  fi ;;
summary)
  printf 'The program greets a person by name.\n' > SUMMARY.md
  echo '{"summary": "The program greets a person by name."}' ;;
*) # the architect is asked
  echo '{"answer": "Only the first argument."}' ;;
esac
