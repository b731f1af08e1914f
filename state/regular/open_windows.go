package regular

// Windows keeps pipes and devices apart from files, and opens folders as files.
const (
	nonBlocking = 0
	folderOnly  = 0
)

func noFile(error) bool { return false }
