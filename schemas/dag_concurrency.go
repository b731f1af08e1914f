package schemas

// Concurrency is a group of DAGs of which one at a time works.
type Concurrency struct {
	// Group is the name of the group, in the whole tree.
	Group string `json:"group" jsonschema:"minLength=1,maxLength=63,example=deploy"`
	// CancelInProgress cancels the DAGs of the group that began before this one, instead of waiting for them. Default false.
	CancelInProgress bool `json:"cancelInProgress,omitempty"`
}

// GroupStatus is the place of a DAG in its concurrency group.
type GroupStatus struct {
	Name string `json:"name"`
	// Since is since when the DAG works or wants to; zero if it does not.
	Since Time `json:"since,omitzero"`
	// Cancels says that it cancels those before it.
	Cancels bool `json:"cancels,omitempty"`
	// WaitsFor is the DAG that it waits for, CancelledBy the one that cancelled it.
	WaitsFor    string `json:"waitsFor,omitempty"`
	CancelledBy string `json:"cancelledBy,omitempty"`
}

func (c *Concurrency) check(at Spot) {
	if c != nil {
		checkRef(at.At("group"), c.Group)
	}
}
