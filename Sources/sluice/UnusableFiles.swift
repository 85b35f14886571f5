/// A configuration file, or files that it names, cannot be opened.
struct UnusableFiles: Error, CustomStringConvertible {
    /// A line for each.
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
