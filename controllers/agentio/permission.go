package agentio

import "fmt"

// Permission is how a person decided about what the agent asked for in its last run.
type Permission struct {
	Request string `json:"request"` // the command, or the title of the tool's call
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason,omitempty"` // of the person
}

// permissionsText tells the agent how its requests were decided.
func permissionsText(all []Permission) string {
	if len(all) == 0 {
		return ""
	}
	var d promptDocument
	d.say("\n\nYour turn ended because you asked for what nobody had decided. What is quoted is your request, and the reason of a person. It is decided now: " +
		"ask again for what is allowed, and go on without what is refused.\n")
	for _, p := range all {
		word := "refused"
		if p.Allowed {
			word = "allowed"
		}
		text := p.Request
		if p.Reason != "" {
			text += fmt.Sprintf("\nreason: %s", p.Reason)
		}
		d.block(word, text)
	}
	return d.String()
}
