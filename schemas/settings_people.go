package schemas

import "strings"

// Person is someone who can approve, and how it is proved who that is.
type Person struct {
	// Name is how approve.by and records call the person.
	Name string `json:"name" jsonschema:"minLength=1,maxLength=100"`
	// Email is another name of the person, as commits have it. It proves nothing.
	Email string `json:"email,omitempty" jsonschema:"maxLength=200"`
	// GitHub is the person's login there: who gives a command in a comment on GitHub is proved by it.
	GitHub string `json:"github,omitempty" jsonschema:"maxLength=39"`
	// SigningKey is the key that signs the person's commits: an SSH public key ("ssh-ed25519 AAAA…"), or the fingerprint of an
	// OpenPGP key. Who adds an Action in a commit with such a signature is proved by it.
	SigningKey string `json:"signingKey,omitempty" jsonschema:"maxLength=2000"`
	// Teams are the teams that the person is in.
	Teams []string `json:"teams,omitempty" jsonschema:"maxItems=100"`
}

// SSH reports whether the signing key is an SSH key, else it is the fingerprint of an OpenPGP key.
func (p *Person) SSH() bool { return strings.Contains(p.SigningKey, " ") }

// Is reports whether a name means the person: the name, the address, or the login with "github:" before it.
func (p *Person) Is(name string) bool {
	login, isLogin := strings.CutPrefix(name, "github:")
	switch {
	case isLogin:
		return p.GitHub != "" && strings.EqualFold(login, p.GitHub)
	case name == "":
		return false
	}
	return name == p.Name || p.Email != "" && strings.EqualFold(name, p.Email)
}

// Among reports whether a list of names has the person, or one of the person's teams.
func (p *Person) Among(names []string) bool {
	for _, n := range names {
		if p.Is(n) {
			return true
		}
		for _, team := range p.Teams {
			if team == n {
				return true
			}
		}
	}
	return false
}

// PersonOf is the declared person whom a name means; nil if none is declared.
func (s *SettingsSpec) PersonOf(name string) *Person {
	for i := range s.People {
		if s.People[i].Is(name) {
			return &s.People[i]
		}
	}
	return nil
}

// checkPeople reports people who cannot be told from each other, and keys that cannot prove anything.
func checkPeople(r *Report, people []Person) {
	seen := map[string]int{}
	for i := range people {
		p, at := &people[i], r.At("people", i)
		checkFilled(at.At("name"), p.Name)
		checkLine(at.At("name"), p.Name)
		for field, name := range map[string]string{"name": p.Name, "email": strings.ToLower(p.Email), "github": "github:" + strings.ToLower(p.GitHub),
			"signingKey": p.keyBody()} {
			if name == "" || name == "github:" {
				continue
			}
			if first, ok := seen[name]; ok && first != i {
				at.At(field).Errorf("duplicate", "somebody else has it, too").also("the other one", "people", first)
			}
			seen[name] = i
		}
		if p.SigningKey != "" && p.keyBody() == "" {
			at.At("signingKey").Errorf("bad-key", "is neither an SSH public key nor the fingerprint of an OpenPGP key").
				suggest(`write it as "ssh-ed25519 AAAA…", or as 40 hexadecimal digits`)
		}
	}
}

// keyBody is the signing key without what does not belong to it; "" if it is none.
func (p *Person) keyBody() string {
	words := strings.Fields(p.SigningKey)
	if len(words) >= 2 && !strings.ContainsAny(p.SigningKey, "\r\n") && (strings.HasPrefix(words[0], "ssh-") || strings.HasPrefix(words[0], "ecdsa-") || strings.HasPrefix(words[0], "sk-")) {
		return words[0] + " " + words[1]
	}
	if key := strings.ToUpper(p.SigningKey); len(key) >= 40 && strings.Trim(key, "0123456789ABCDEF") == "" {
		return key
	}
	return ""
}

// Key is the signing key in its shortest form.
func (p *Person) Key() string { return p.keyBody() }
