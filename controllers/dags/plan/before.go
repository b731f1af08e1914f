package plan

// Before are the keys that the node of a loop can have in the round before. Only the keys of its members differ there: what a member
// needs is a member, too, or comes before all of them.
func (b *Binding) Before(p *Plan, l *Loop) []string {
	if made := b.before[l.at].Load(); made != nil {
		return *made
	}
	out := []string{b.keyBefore(p, l, p.defs, p.defs, b.tasks, nil), b.keyBefore(p, l, p.defs, p.agentDefs, b.withAgents, b.runners)}
	if f := b.formerKeys(p); f != nil {
		out = append(out, b.keyBefore(p, l, f.defs, f.defs, f.tasks, nil), b.keyBefore(p, l, f.defs, f.agentDefs, f.withAgents, b.runners))
	}
	b.before[l.at].Store(&out)
	return out
}

// keyBefore is the key of the node of a loop in the round before, from the definitions of tasks, those of the nodes, and their keys in
// this round.
func (b *Binding) keyBefore(p *Plan, l *Loop, tasks, defs [][]byte, now []string, runners map[string]string) string {
	round := loopRound{number: b.rounds[l.Node] - 1}
	if round.number > 1 {
		round.of = b.loopDigest(l, tasks)
	}
	then := make(map[int32]string, len(l.order))
	of := func(i int32) string {
		if key, ok := then[i]; ok {
			return key
		}
		return now[i]
	}
	var buf []byte
	for _, i := range l.order {
		then[i], buf = p.nodeKey(buf, b, i, defs[i], of, runners[p.Spec.Nodes[i].Agent], round)
	}
	return then[l.Node]
}
