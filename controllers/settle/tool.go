package settle

// Tool describes a program that nodes declare.
type Tool struct {
	Version string // what it prints; "" if that cannot be found out
	Why     string // why it cannot
}

// ToolUnasked represents the version of a program whose file has changed since it was asked.
const ToolUnasked = "not asked yet"
