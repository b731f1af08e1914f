// adapter
