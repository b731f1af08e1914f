package agentio

import "strings"

// Remind adds a memory section to the stdin of an agent in its format, as made by Stdin and Attach: in a prompt as a
// section, in JSON as the text of the field "memory", for "none" not at all. The section quotes line by line, as
// everything here.
func Remind(format, stdin, section string) string {
	if section = strings.TrimSpace(section); section == "" {
		return stdin
	}
	switch format {
	case FormatNone:
		return stdin
	case FormatJSON:
		body, isObject := strings.CutSuffix(stdin, "}\n")
		if !isObject {
			return stdin
		}
		return body + `,"memory":` + strings.TrimSuffix(encode(section+"\n"), "\n") + "}\n"
	}
	return strings.TrimRight(stdin, "\n") + "\n\n" + section + "\n"
}
