package settle

import "reconcile.dev/reconcile/schemas"

// Metering says that an agent's requests to its model go through the metering proxy, which holds the key.
type Metering struct {
	// Upstream is the address of the model's service, below which the requests go.
	Upstream string
	// Key says where the key is; nil: none is sent.
	Key *schemas.KeySource `json:",omitempty"`
	// In and Setting name the object and the field that the address comes from, for messages.
	In, Setting string
	// Env are the variables of the agent, "K=V", in which schemas.ArgURL and schemas.ArgToken represent the address of the proxy and
	// the token of the run. They can stand in the command's arguments, too.
	Env []string `json:",omitempty"`
}

// Destination is where the key and the prompts go.
func (m *Metering) Destination() schemas.Destination {
	d := schemas.Destination{Setting: m.Setting, In: m.In, URL: schemas.CanonicalAddress(m.Upstream), What: "the prompts of an agent"}
	if m.Key != nil {
		d.Env, d.File = m.Key.Env, m.Key.File
	}
	return d
}

// Metered is what the metering proxy knows of a run.
type Metered struct {
	// Usage counts the requests to models so far; Model is the one that answered last.
	Usage schemas.Usage
	Model string
	// CostUSD is the cost of the requests by the table of prices; nil if the price of one is not known, and before the first.
	CostUSD *float64
	// Over says which part of the budget was used up when the run asked for more; "" as long as it was not refused anything.
	Over string
	// Failed is the error that the last request to a model ended with; nil if it did not.
	Failed *WireError
}

// WireError is an error of a model's service.
type WireError struct {
	Status              int // HTTP; 0: no connection
	Kind                string
	Message, RetryAfter string
}
