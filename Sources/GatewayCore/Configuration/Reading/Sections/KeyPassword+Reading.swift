extension KeyPassword {
    /// The password in `text` or in the file that `file` names; both together are a problem.
    init?<Key>(reading section: SectionReader<Key>, text: Key, file: Key) {
        if section.has(text), section.has(file) {
            section.add(file, expected: "only one of \(text.rawValue) and \(file.rawValue)", remedy: "leave one out")
        }
        if let path = section.value(file, as: ValueSyntax<String>.path) {
            self = .file(path)
        } else if let password = section.value(text, as: ValueSyntax<String>.text) {
            self = .text(password)
        } else {
            return nil
        }
    }
}
