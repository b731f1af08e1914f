package schemas

import (
	"bytes"
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"time"
)

// Notification says who is told of the end of a DAG: a program, or an address. Exactly one of Command and Webhook is set.
type Notification struct {
	// Command is a program and its arguments; no shell reads them. It reads the notification, as JSON, from its standard input.
	Command []string `json:"command,omitempty" jsonschema:"minItems=1,maxItems=1000"`
	// Env is added to the environment of the command; it wins over the session's.
	Env Env `json:"env,omitempty"`
	// Webhook is an address that the notification is sent to.
	Webhook *Webhook `json:"webhook,omitempty"`
	// Timeout ends an attempt. Default 30s.
	Timeout *Duration `json:"timeout,omitempty" jsonschema:"default=30s"`
	// Retry says how often a failed attempt is repeated. Default: three times, after 5s, 10s and 20s.
	Retry *Retry `json:"retry,omitempty"`
}

// Webhook is an address that gets a POST request with JSON.
type Webhook struct {
	// URL is the address, with https or http: a text, or where it is read when it is needed. One that lets everybody send who knows it
	// is a secret: have it read from a variable whose name has WEBHOOK in it, or from a file outside of the tree.
	URL EnvValue `json:"url"`
	// Secret says where the key is that signs the request. Default: no signature.
	Secret *EnvSource `json:"secret,omitempty"`
}

// Notifications are one notification or several. One may be written without a list.
type Notifications []Notification

// UnmarshalJSON decodes a list of notifications, or one.
func (s *Notifications) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '{' {
		*s = make(Notifications, 1)
		return json.Unmarshal(b, &(*s)[0])
	}
	return json.Unmarshal(b, (*[]Notification)(s))
}

// Notice is a notification of one end of a DAG, and how far it is.
type Notice struct {
	// On is OnFailure or OnSuccess; To is the program or the host.
	On string `json:"on"`
	To string `json:"to"`
	// Key is a digest of the end and of what is to be done; it is the NodeKey of the attempts.
	Key string `json:"key"`
	// State is NodePending, NodeSucceeded or NodeFailed. Attempts counts the attempts that have ended; Run is the key of the latest one.
	State    string `json:"state"`
	Attempts int    `json:"attempts,omitempty"`
	Run      string `json:"run,omitempty"`
	// At is when the latest attempt ended, RetryAt when the next one is due.
	At      Time `json:"at,omitzero"`
	RetryAt Time `json:"retryAt,omitzero"`
	// Message says why the latest attempt failed, and Output is the end of what it printed, or of the answer.
	Message string `json:"message,omitempty"`
	Output  string `json:"output,omitempty"`
}

// The fields of a DAG that have notifications. They take the place of a node in the records: no node can have such a name.
const (
	OnFailure = "onFailure"
	OnSuccess = "onSuccess"
)

// Defaults of a notification.
const (
	defaultNotifyTimeout = 30 * time.Second
	defaultNotifyBackoff = Duration(5 * time.Second)
	defaultNotifyRetries = 3
)

// Notifies returns the notifications of the end of a DAG with a phase, and the field that has them; none for any other phase.
func (s *DAGSpec) Notifies(phase string) (on string, all Notifications) {
	switch phase {
	case DAGFailed:
		return OnFailure, s.OnFailure
	case DAGSucceeded:
		return OnSuccess, s.OnSuccess
	}
	return "", nil
}

// Limit is the time that an attempt may take.
func (n *Notification) Limit() time.Duration {
	if n.Timeout == nil {
		return defaultNotifyTimeout
	}
	return n.Timeout.Std()
}

// Retries says how an attempt that failed is repeated, with every field set.
func (n *Notification) Retries() Retry {
	r := Retry{Limit: defaultNotifyRetries, Backoff: new(defaultNotifyBackoff)}
	if n.Retry != nil {
		r = *n.Retry
	}
	r.fill()
	return r
}

// To names the program, or the host of the address; a secret address by the place that it is read from.
func (n *Notification) To() string {
	switch w := n.Webhook; {
	case w == nil:
		return n.Command[0]
	case w.URL.From == EnvFromFile:
		return w.URL.Path
	case w.URL.From != "":
		return "$" + w.URL.Name
	default:
		u, err := url.Parse(w.URL.Text)
		if err != nil {
			return "webhook"
		}
		return u.Host
	}
}

// Destination is the address of a webhook that the spec of a DAG has; false for one that is read elsewhere. field is its place.
func (w *Webhook) Destination(ref Ref, field string) (Destination, bool) {
	if w == nil || w.URL.From != "" {
		return Destination{}, false
	}
	return Destination{Setting: field + ".webhook.url", URL: CanonicalAddress(w.URL.Text), In: ref.String(), What: "the outcomes of the DAG"}, true
}

// IsWebhook reports whether address is an absolute URL with http or https that a request can be sent to.
func IsWebhook(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil && u.Fragment == "" && isAddress(address)
}

// check reports problems of the notifications in a field.
func (s Notifications) check(r *Report, field string) {
	for i := range s {
		n, at := &s[i], r.At(field, i)
		switch {
		case len(n.Command) == 0 && n.Webhook == nil:
			at.Errorf("missing", "does not say who is told").suggest("add command, a program with its arguments, or webhook with a url")
		case len(n.Command) > 0 && n.Webhook != nil:
			at.At("webhook").Errorf("conflict", "a notification has either a command or a webhook").
				suggest("write two notifications, as a list").also("the other one", field, i, "command")
		case n.Webhook != nil && len(n.Env) > 0:
			at.At("env").Errorf("conflict", "only a command has an environment").suggest("remove env")
		}
		checkArgv(at.At("command"), n.Command)
		n.Env.check(r, field, i, "env")
		checkTimeout(at.At("timeout"), n.Timeout)
		n.Retry.check(at.At("retry"))
		n.Webhook.check(at.At("webhook"))
		for before := range i {
			if reflect.DeepEqual(s[before], *n) {
				at.Errorf("duplicate-name", "is the same as another one").suggest("remove it").also("the other one", field, before)
			}
		}
	}
}

// check validates the address of a webhook that a DAG notifies.
func (w *Webhook) check(at Spot) {
	if w == nil {
		return
	}
	switch u := &w.URL; {
	case u.From == "" && !IsWebhook(u.Text):
		at.At("url").Errorf("bad-url", "this is no address of a webhook").suggest("write an address such as https://example.com/hook, without a name, a password or #")
	case u.From == EnvFromCaller && u.Path == "" && !isWebhookVariable(u.Name):
		at.At("url", "name").Errorf("bad-env", "only a variable with WEBHOOK in its name can have an address that results are sent to").
			suggest("put the address into a variable such as TEAM_WEBHOOK_URL")
	case u.From == EnvFromFile && u.Path != "" && !strings.HasPrefix(u.Path, "/") && !strings.HasPrefix(u.Path, "~/"):
		at.At("url", "path").Errorf("bad-path", "a file of the tree cannot have an address that results are sent to").
			suggest("write the address as a text, or name a file outside of the tree")
	case u.From != "":
		u.check(at.At("url"), "")
	}
	if w.Secret != nil {
		w.Secret.check(at.At("secret"), "")
	}
}

func isWebhookVariable(name string) bool {
	return isEnvName(name) && strings.Contains(strings.ToUpper(name), "WEBHOOK") && !strings.HasPrefix(strings.ToUpper(name), "RECONCILE_")
}
