package secrets

import "strings"

const (
	longKey = 64 << 10 // a private key is shorter, marks included
	minKey  = 16       // bytes of a key that was cut off, from which on it is one
)

// keyBegin finds the private key that begins with the mark "-----BEGIN … PRIVATE KEY-----", to its end; or to where the
// text stops looking like one, if it was cut off. Its lines may end with escapes, as in JSON. end is behind the mark's
// first word.
func (s *secretScanner) keyBegin(end int) {
	body := keyMark(s.text, end)
	if body < 0 || body <= s.key {
		return
	}
	start := strings.LastIndex(s.text[:end], "--")
	for start > 0 && s.text[start-1] == '-' {
		start--
	}
	stop := keyEnds(s.text, body)
	if stop < 0 {
		if stop = keyBody(s.text, body); significant(s.text[body:stop]) < minKey {
			return
		}
		for isSpace(s.text[stop-1]) {
			stop--
		}
	}
	s.key = stop
	s.add(ruleKey, start, stop)
}

// keyEnd finds the rest of a private key whose beginning was cut off; end is behind "-----END ".
func (s *secretScanner) keyEnd(end int) {
	stop := keyMark(s.text, end)
	if stop < 0 || stop <= s.key {
		return
	}
	mark := strings.LastIndex(s.text[:end], "--")
	for mark > 0 && s.text[mark-1] == '-' {
		mark--
	}
	start := mark
	for low := max(mark-longKey, s.key); start > low; {
		from, to := lineBefore(s.text, low, start)
		if text := strings.Trim(s.text[from:to], lineFrame); text != "" && !base64Line(text, minKey) {
			break
		}
		start = from
	}
	if significant(s.text[start:mark]) >= minKey {
		s.key = stop
		s.add(ruleKey, start, stop)
	}
}

// keyMark returns where the mark ends in whose middle i is, behind BEGIN or END; -1 if it is not that of a private key.
func keyMark(text string, i int) int {
	limit := min(len(text), i+140)
	for j := i; j < limit; j++ {
		if c := text[j]; c == '-' && strings.HasPrefix(text[j:], "---") {
			if !strings.Contains(strings.ToUpper(text[i:j]), "PRIVATE KEY") {
				return -1
			}
			for j < len(text) && text[j] == '-' {
				j++
			}
			return j
		} else if !isWord(c) && c != ' ' && c != '-' {
			return -1
		}
	}
	return -1
}

// keyEnds returns where the mark ends that ends the key whose body begins at i; -1 if another key or the end comes
// first.
func keyEnds(text string, i int) int {
	limit := min(len(text), i+longKey)
	for {
		j := strings.Index(text[i:limit], "-----")
		if j < 0 {
			return -1
		}
		i += j
		switch mark := text[i:min(i+len("-----begin "), limit)]; {
		case foldPrefix(mark, "-----begin "):
			return -1
		case foldPrefix(mark, "-----end "):
			if stop := keyMark(text, i+len("-----end ")); stop >= 0 {
				return stop
			}
			i += len("-----end ")
		default:
			i++
		}
	}
}

// lineFrame is what may stand around a line of a key: indentation, quotes, marks of quotations, differences and
// strings.
const lineFrame = " \t\r\n\"'`|>+,;\\"

// keyBody returns where the lines that look like a key's body end, which begins at i.
func keyBody(text string, i int) int {
	limit := min(len(text), i+longKey)
	last := 64
	for i < limit {
		to, next := lineEnd(text, i, limit)
		line := strings.Trim(text[i:to], lineFrame)
		if !keyLine(line, last) {
			break
		}
		if line != "" {
			last = len(line)
		}
		i = next
	}
	return i
}

// keyLine reports whether a line can be part of a key's body, after a line of last bytes: encoded bytes, where only
// the last line is short, or a field of its header.
func keyLine(line string, last int) bool {
	if line == "" {
		return true
	}
	short := minKey
	if last >= 60 {
		short = 1
	}
	return base64Line(line, short) || keyHeader(line)
}

func keyHeader(line string) bool {
	for _, h := range []string{"Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Subject:", "X-"} {
		if strings.HasPrefix(line, h) {
			return true
		}
	}
	return false
}

// base64Line reports whether a line consists of encoded bytes, at least that many.
func base64Line(line string, least int) bool {
	for i := range len(line) {
		if c := line[i]; !isAlnum(c) && c != '+' && c != '/' && c != '=' && c != '-' && c != '_' {
			return false
		}
	}
	return len(line) >= least
}

// significant counts the bytes that can be a key's.
func significant(text string) (n int) {
	for i := range len(text) {
		if isAlnum(text[i]) {
			n++
		}
	}
	return n
}

// lineEnd returns where the line at i ends and the next one begins; "\n" with a backslash ends one, too.
func lineEnd(text string, i, limit int) (to, next int) {
	for j := i; j < limit; j++ {
		if text[j] == '\n' {
			return j, j + 1
		}
		if text[j] == '\\' && j+1 < limit && (text[j+1] == 'n' || text[j+1] == 'r') {
			return j, j + 2
		}
	}
	return limit, limit
}

// lineBefore returns the line that ends before i, not before low, without its end.
func lineBefore(text string, low, i int) (from, to int) {
	switch to = i; {
	case text[i-1] == '\n':
		to--
	case endsLine(text[low:i]):
		to -= 2
	}
	for from = to; from > low && !endsLine(text[low:from]); {
		from--
	}
	return from, to
}

// endsLine reports whether text ends with the end of a line, perhaps an escaped one.
func endsLine(text string) bool {
	return strings.HasSuffix(text, "\n") || strings.HasSuffix(text, `\n`) || strings.HasSuffix(text, `\r`)
}

// publicKey reports whether a value is an SSH public key, or the word that begins one.
func publicKey(text string) bool {
	kind, _, _ := strings.Cut(text, " ")
	switch kind {
	case "ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521":
		return true
	}
	return false
}

// keyOf reports whether a key with these words before it is one that opens something.
func keyOf(head string) bool {
	head = strings.ToLower(strings.TrimRight(head, "_-. "))
	for _, word := range []string{
		"api", "access", "secret", "private", "signing", "encryption", "account", "shared", "master", "service", "storage",
		"deploy", "auth", "client", "app", "license", "subscription", "webhook", "session", "jwt", "hmac", "aes", "crypto",
	} {
		if strings.HasSuffix(head, word) {
			return true
		}
	}
	return false
}
