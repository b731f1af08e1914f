package settle

// Tool is what is known of a program that nodes declare.
type Tool struct {
	Version string // what it prints; "" if that cannot be found out
	Why     string // why it cannot
}

// ToolUnasked stands for the version of a program whose file is another one than when it was asked.
const ToolUnasked = "not asked yet"
