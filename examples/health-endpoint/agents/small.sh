# A small program in the place of a coding agent. It reads its task, works in its checkout, and prints a line of JSON for
# each event, as coding agents do. Its argument is the session to continue, if there is one.
task=$(cat)
echo "{\"type\": \"start\", \"session\": \"${1:-$RECONCILE_AGENT-$$}\", \"model\": \"small-1\"}"

finish() { # TEXT TOKENS-IN TOKENS-OUT
  printf '{"type": "end", "text": "%s", "tokens": {"in": %s, "out": %s}}\n' "$1" "$2" "$3"
}

health() { # ANSWER: the handler, as it is to be formatted
  printf 'package main\n\nimport (\n\t"fmt"\n\t"net/http"\n)\n\n// health answers that the server works.\nfunc health(w http.ResponseWriter, _ *http.Request) {\n\tfmt.Fprintln(w, "%s")\n}\n' "$1" > health.go
}

case $RECONCILE_NODE in
requirements)
  mkdir -p docs
  printf '# Requirements\n\nWhoever runs the server can ask it whether it works.\n' > docs/requirements.md
  finish 'The requirements are in docs/requirements.md.' 1200 60 ;;
design)
  printf '# Design\n\nGET /health, in a file of its own: health.go.\n' > docs/design.md
  finish 'The design is in docs/design.md.' 1500 70 ;;
endpoint)
  case $task in
  *'sent back by the tester'*) # now it answers what is wanted
    health ok
    finish 'The answer is ok now.' 4100 90 ;;
  *'sent back by the inspector'*)
    health fine
    finish 'The file is formatted.' 3600 80 ;;
  *'in a new conversation'*) # what is left of the work that was handed over
    sed 's|.*"GET /greet".*|&\n\tmux.HandleFunc("GET /health", health)|' routes.go > routes.new && mv routes.new routes.go
    printf 'package main\n\nimport (\n\t"net/http"\n\t"testing"\n)\n\nfunc TestHealth(t *testing.T) {\n\tif code, text := ask("/health"); code != http.StatusOK || text != "ok\\n" {\n\t\tt.Errorf("GET /health = %%d %%q, want 200 and ok", code, text)\n\t}\n}\n' > health_test.go
    finish 'The endpoint is there, and all tests pass.' 2900 240 ;;
  *'The word ok, and nothing else.'*) # the product manager has answered
    health fine && tr -d '\t' < health.go > health.new && mv health.new health.go
    echo '{"type": "say", "text": "The handler is there, but not its route and its test."}'
    echo '{"type": "context", "used": 97000, "window": 100000}'
    exec sleep 60 ;;
  *) finish 'CLARIFICATION NEEDED from product-manager about the answer: What does GET /health answer?' 1700 40 ;;
  esac ;;
changelog)
  case $task in *0.2.0*) printf '# 0.2.0\n\nGET /health says whether the server works.\n' > CHANGELOG.md ;; esac
  finish 'The change is in CHANGELOG.md.' 1100 50 ;;
*)
  case $task in
  *'is handed over'*) # the architect is asked
    finish '{\"accept\": true, \"instructions\": \"The route comes after that of greet.\"}' 900 30 ;;
  *) finish 'The word ok, and nothing else.' 800 20 ;; # the product manager is asked
  esac ;;
esac
