/// All keys of a configuration with the form of their values, collected from the section readers: each key is declared
/// where it is read.
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
        /// Name of the key enumeration without `Key`: `Listener`, `ServerTLS`.
        package let name: String
        package let keys: [Key]

        package subscript(_ name: String) -> Form? { self.keys.first { $0.name == name }?.form }
    }

    package struct Key: Sendable, Hashable {
        package let name: String
        package let form: Form
        package let isRequired: Bool
    }

    /// The whole configuration.
    package static let whole = Self.collect()

    /// The form of an entry of `section`.
    package static func entry(of section: ConfigurationSection) -> Form {
        guard case .list(let entry)? = Self.whole[section.rawValue] else { return .value(.text("")) }
        return entry
    }

    /// Full name of each key: `listeners[].tls.certificate`, `max-connections`. Those of `control.tls` are left out, as
    /// they equal those of a listener's `tls`.
    package static var keyNames: [String] {
        Self.names(.section(Self.whole), at: "").filter { !$0.hasPrefix("control.tls.") }
    }

    private static func names(_ form: Form, at path: String) -> [String] {
        switch form {
        case .value, .map: []
        case .list(let element): Self.names(element, at: path + "[]")
        case .either(let forms): forms.flatMap { Self.names($0, at: path) }
        case .section(let section):
            section.keys.flatMap { key in
                let name = path.isEmpty ? key.name : "\(path).\(key.name)"
                return [name] + Self.names(key.form, at: name)
            }
        }
    }

    /// Runs the readers on an empty document and records the keys they read.
    private static func collect() -> Section {
        let empty = DocumentNode(.mapping([]), origin: .option(""))
        let keyCollector = ConfigurationKeyCollector()
        let problems = ProblemCollector(document: empty, keyCollector: keyCollector)
        _ = Configuration(reading: SectionReader(empty, at: .root, problems: problems))
        guard case .section(let section)? = keyCollector.form(at: .root) else {
            return Section(name: "Gateway", keys: [])
        }
        return section
    }
}

/// Records the keys that the section readers read.
final class ConfigurationKeyCollector {
    private enum Declaration: Hashable {
        case value(ValueFormat)
        /// The form of its elements is declared at index 0.
        case list
        /// The form of its values is declared at the key `*`.
        case map
        case section(name: String, keys: [String])
    }

    private var declarations: [ConfigurationKeyPath: [Declaration]] = [:]
    private var required: Set<ConfigurationKeyPath> = []

    func value(_ form: ValueFormat, at path: ConfigurationKeyPath) { self.add(.value(form), at: path) }

    func list(at path: ConfigurationKeyPath) { self.add(.list, at: path) }

    func map(at path: ConfigurationKeyPath) { self.add(.map, at: path) }

    func section<Key: CaseIterable & RawRepresentable<String>>(_ keys: Key.Type, at path: ConfigurationKeyPath) {
        let name = "\(keys)"
        self.add(
            .section(
                name: name.hasSuffix("Key") ? String(name.dropLast(3)) : name, keys: keys.allCases.map(\.rawValue)),
            at: path)
    }

    func require(_ path: ConfigurationKeyPath) { self.required.insert(path) }

    private func add(_ declaration: Declaration, at path: ConfigurationKeyPath) {
        guard self.declarations[path]?.contains(declaration) != true else { return }
        self.declarations[path, default: []].append(declaration)
    }

    /// - Returns: `nil` if no key is declared there.
    func form(at path: ConfigurationKeyPath) -> ConfigurationSchema.Form? {
        let forms = (self.declarations[path] ?? []).compactMap { declaration -> ConfigurationSchema.Form? in
            switch declaration {
            case .value(let form): return .value(form)
            case .list: return self.form(at: path.index(0)).map { .list($0) }
            case .map: return self.form(at: path.key("*")).map { .map($0) }
            case .section(let name, let keys):
                return .section(
                    ConfigurationSchema.Section(name: name, keys: keys.compactMap { self.key($0, in: path) }))
            }
        }
        return forms.count > 1 ? .either(forms) : forms.first
    }

    private func key(_ name: String, in section: ConfigurationKeyPath) -> ConfigurationSchema.Key? {
        let path = section.key(name)
        return self.form(at: path).map { form in
            ConfigurationSchema.Key(name: name, form: form, isRequired: self.required.contains(path))
        }
    }
}
