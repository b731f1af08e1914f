# A small program in the place of a coding agent. It reads its task, works in its checkout, and prints a line of JSON for
# each event, as coding agents do. Its argument is the session to continue, if there is one.
task=$(cat)
session=${1:-$RECONCILE_AGENT-$$}
echo "{\"type\": \"start\", \"session\": \"$session\", \"model\": \"small-1\"}"

finish() { # TEXT TOKENS-IN TOKENS-OUT COST
  printf '{"type": "end", "text": "%s", "tokens": {"in": %s, "out": %s}, "cost": %s}\n' "$1" "$2" "$3" "$4"
}

add() { # NAME CALL: a line at the end of the list of shapes
  awk -v line="	{\"$1\", $2}," '/^}/ && list { print line; list = 0 } /^var shapes/ { list = 1 } { print }' shapes.go > shapes.new
  mv shapes.new shapes.go
}

case $RECONCILE_NODE in
circle) # asks first
  case $task in
  *'Use math.Pi'*)
    printf 'package main\n\nimport "math"\n\n// circle returns the area of a circle by its radius.\nfunc circle(radius float64) float64 { return math.Pi * radius * radius }\n' > circle.go
    add circle 'circle(1)'
    finish 'The circle is there.' 2600 140 0.021 ;;
  *) finish 'CLARIFICATION NEEDED from architect about pi: How exact does it have to be?' 1800 40 0.012 ;;
  esac ;;
triangle) # takes its time, unless it continues a session
  [ -n "$1" ] || sleep 2
  printf 'package main\n\n// triangle returns the area of a triangle by its base and height.\nfunc triangle(base, height float64) float64 { return base * height / 2 }\n' > triangle.go
  add triangle 'triangle(3, 2)'
  finish 'The triangle is there.' 2100 120 0.017 ;;
tests) # meets a rate limit that ends in a second
  if [ -z "$1" ]; then
    echo '{"type": "failed", "why": "too many requests", "status": 429, "retryAfter": 1}'
    exit 1
  fi
  printf 'package main\n\nimport "testing"\n\nfunc TestSquare(t *testing.T) {\n\tif got := square(3); got != 9 {\n\t\tt.Errorf("square(3) = %%v, want 9", got)\n\t}\n}\n' > shapes_test.go
  finish 'The square is tested.' 1900 110 0.014 ;;
*) # the architect is asked
  finish 'Use math.Pi: it is exact enough for every shape.' 900 30 0.005 ;;
esac
