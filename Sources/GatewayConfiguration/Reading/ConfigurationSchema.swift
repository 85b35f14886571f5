/// All keys of a configuration with the form of their values, taken from the declarations of the sections.
package struct ConfigurationSchema: Sendable {
    /// The form of a key's value.
    package indirect enum Form: Sendable, Hashable {
        case value(ValueFormat)
        case list(Form)
        /// A mapping with arbitrary keys.
        case map(Form)
        case section(Section)
        /// Any of several forms.
        case either([Form])
    }

    package struct Section: Sendable, Hashable {
        /// `Listener`, `ServerTLS`.
        package let name: String
        package let keys: [Key]

        package func key(_ name: String) -> Key? { self.keys.first { $0.name == name } }

        package subscript(_ name: String) -> Form? { self.key(name)?.form }
    }

    package struct Key: Sendable, Hashable {
        package let name: String
        package let form: Form
        package let isRequired: Bool
        /// What the key sets, and the effect at its limit: sentences in Markdown.
        package let text: String
        /// The default in Markdown; `nil` if there is none.
        package let defaultText: String?
        let explicitExample: String?
        /// Whether a change takes effect at the next start only.
        package let needsRestart: Bool
    }

    /// The whole configuration.
    package static let whole = Section(Configuration.self)

    /// The form of an entry of `section`.
    package static func entry(of section: ConfigurationSection) -> Form {
        guard case .list(let entry)? = Self.whole[section.rawValue] else { return .value(.text("", "text")) }
        return entry
    }

    /// Each key with its full name: `listeners[].tls.certificate`, `max-connections`. Those of `control.tls` are left
    /// out, as they equal those of a listener's `tls`.
    package static var keys: [(name: String, key: Key)] {
        Self.keys(of: .section(Self.whole), at: "").filter { !$0.name.hasPrefix("control.tls.") }
    }

    private static func keys(of form: Form, at path: String) -> [(name: String, key: Key)] {
        switch form {
        case .value, .map: []
        case .list(let element): Self.keys(of: element, at: path + "[]")
        case .either(let forms): forms.flatMap { Self.keys(of: $0, at: path) }
        case .section(let section):
            section.keys.flatMap { key in
                let name = path.isEmpty ? key.name : "\(path).\(key.name)"
                return [(name, key)] + Self.keys(of: key.form, at: name)
            }
        }
    }
}
