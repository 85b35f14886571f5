/// Labels as they are typed: `NAME=VALUE`.
package enum LabelText {
    /// - Returns: `nil` for a text without a name or without `=`.
    package static func pair(_ text: String) -> (name: String, value: String)? {
        guard let mark = text.firstIndex(of: "="), mark > text.startIndex else { return nil }
        return (String(text[..<mark]), String(text[text.index(after: mark)...]))
    }

    /// The last one counts of several with one name.
    /// - Returns: `nil` if one of them is no label; with which.
    package static func labels(_ texts: [String]) -> Result<[String: String], Fault> {
        var labels: [String: String] = [:]
        for text in texts {
            guard let (name, value) = self.pair(text) else { return .failure(Fault(text: text)) }
            labels[name] = value
        }
        return .success(labels)
    }

    /// What is no label.
    package struct Fault: Error, Equatable {
        package let text: String

        package init(text: String) {
            self.text = text
        }
    }
}
