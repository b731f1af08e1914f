package settle

import "reconcile.dev/reconcile/schemas"

// Webhook is one POST request to an address, from this process. Its Command has no Argv, and a Stdin that is the body.
type Webhook struct {
	Command
	URL    schemas.EnvValue
	Secret *schemas.EnvSource `json:",omitempty"` // where the key of the signature is; nil: there is none
	// Delivery is the same for all attempts to deliver one notification.
	Delivery string
	// To names the address without what is secret in it.
	To string
	// Destination is what the user has to allow; nil where the address is not from the tree.
	Destination *schemas.Destination `json:",omitempty"`
}
