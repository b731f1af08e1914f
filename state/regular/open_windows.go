package regular

// Windows separates pipes and devices from files, and opens folders as files.
const (
	nonBlocking = 0
	folderOnly  = 0
)

func noFile(error) bool { return false }
