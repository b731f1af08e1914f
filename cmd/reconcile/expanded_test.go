package main

// expandedMakes are the files that the nodes of expandedFiles make.
var expandedMakes = []string{"list.json", "each-a.txt", "each-b.txt", "build-linux.txt", "build-mac.txt", "work.txt", "judge.json",
	"tests.txt", "ship.txt", "sell.txt", "tell.txt"}

// answerSign does the task of a person in the DAG of expandedFiles.
const answerSign = "apiVersion: reconcile.dev/v1alpha1\nkind: Action\nmetadata: {name: sign}\n" +
	"spec: {verb: approve, target: dag/change, node: sign}\n"

// expandedFiles are a tree whose DAG has a matrix of values, one over a result, a loop, a call and a final node. The result of an agent
// asks for a change of the plan, which the architect accepts while the DAG works. Each run begins with head.
func expandedFiles(head string) map[string]string {
	return map[string]string{
		"agents/head.sh":              head,
		"agents/tests.sh":             head + "echo tested > tests.txt\n",
		"reconcile.yaml":              `{apiVersion: reconcile.dev/v1alpha1, kind: Settings, metadata: {name: settings}, spec: {commands: {allow: ["sh agents/tests.sh"]}}}`,
		"specs/session.yaml":          `{apiVersion: reconcile.dev/v1alpha1, kind: Session, metadata: {name: change}, spec: {title: Change}}`,
		"specs/agents/engineer.yaml":  agentSpec("engineer", "runner: {command: {argv: [sh, agents/engineer.sh], output: json}}"),
		"specs/agents/architect.yaml": agentSpec("architect", "runner: {command: {argv: [sh, agents/architect.sh]}}"),
		"specs/agents/boss.yaml":      agentSpec("boss", "runner: {human: {}}"),
		"agents/engineer.sh": head + `cat > /dev/null
echo '{"reconcile": 1, "result": "planned", "planChange": {"change": "modify", "reason": "tests are missing", "suggestions": {
"add": [{"name": "tests", "run": ["sh", "agents/tests.sh"], "needs": ["plan"]}], "remove": ["old"],
"needs": {"ship": ["list", "judge", "sign", "tests"]}}}}'
`,
		"agents/architect.sh": head + "cat > /dev/null\necho '{\"accept\": true, \"reason\": \"better\"}'\n",
		"specs/change.yaml": `apiVersion: reconcile.dev/v1alpha1
kind: DAG
metadata: {name: change}
spec:
  session: change
  nodes:
    - name: list
      script: . agents/head.sh; echo '["a", "b"]' > list.json
      outputs: {json: list.json}
    - name: each
      matrix: {from: needs.list.result}
      script: . agents/head.sh; echo "$RECONCILE_MATRIX_VALUE" > "each-$RECONCILE_MATRIX_VALUE.txt"
    - name: build
      matrix: {values: {os: [linux, mac]}}
      script: . agents/head.sh; echo "$RECONCILE_MATRIX_OS" > "build-$RECONCILE_MATRIX_OS.txt"
    - name: work
      needs: [each, build]
      script: . agents/head.sh; echo "round $RECONCILE_ROUND, told ${RECONCILE_NEED_JUDGE_RESULT:-nothing}" > work.txt
    - name: judge
      needs: [work]
      script: '. agents/head.sh; echo "{\"ok\": $(test $RECONCILE_ROUND = 3 && echo true || echo false)}" > judge.json'
      outputs: {json: judge.json}
      repeat: {until: result.ok, from: work, max: 5}
    - {name: plan, needs: [list], agent: engineer, prompt: Plan.}
    - {name: sign, agent: boss, prompt: Sign., needs: [judge, plan]}
    - {name: old, needs: [sign], run: ["false"]}
    - {name: ship, needs: [list, judge, sign], dag: deploy, with: {to: "{{ needs.list.result[1] }}"}}
    - name: sell
      needs: [ship]
      script: . agents/head.sh; echo "$RECONCILE_NEED_SHIP_RESULT" > sell.txt
  finally:
    - name: tell
      script: . agents/head.sh; echo "$RECONCILE_NEED_SELL_STATE" > tell.txt
`,
		"specs/deploy.yaml": `apiVersion: reconcile.dev/v1alpha1
kind: DAG
metadata: {name: deploy}
spec:
  template: true
  params: {to: {}}
  nodes:
    - name: copy
      script: '. agents/head.sh; echo "\"$RECONCILE_PARAM_TO\"" > ship.txt'
      outputs: {json: ship.txt}
    - {name: check, needs: [copy], script: . agents/head.sh; cat ship.txt}
`,
	}
}
