/// What opens an encrypted private key. Its text never appears in a description.
package enum KeyPassword: Sendable, Equatable {
    case text(String)
    /// The first line of this file.
    case file(String)
}

extension KeyPassword: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String {
        switch self {
        case .text: "(given)"
        case .file(let path): "(in \(path))"
        }
    }

    package var debugDescription: String { self.description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}
