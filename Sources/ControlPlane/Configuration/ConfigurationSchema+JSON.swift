import ControlAPI
import GatewayConfiguration
import GatewayCore

/// The relation between JSON values and the forms that the configuration's readers declare.
extension ConfigurationSchema.Form {
    /// The form of an unknown key.
    static let unknown = ConfigurationSchema.Form.either([])

    /// The forms of which one applies.
    private var alternatives: [ConfigurationSchema.Form] {
        if case .either(let forms) = self { forms.flatMap(\.alternatives) } else { [self] }
    }

    private var values: [ValueFormat] {
        self.alternatives.compactMap { if case .value(let form) = $0 { form } else { nil } }
    }

    var element: ConfigurationSchema.Form? {
        self.alternatives.lazy.compactMap { if case .list(let element) = $0 { element } else { nil } }.first
    }

    /// The form of the member `name`.
    func member(_ name: String) -> ConfigurationSchema.Form? {
        self.alternatives.lazy.compactMap { form -> ConfigurationSchema.Form? in
            switch form {
            case .section(let section): section[name]
            case .map(let content): content
            case .value, .list, .either: nil
            }
        }.first
    }

    func form(at steps: some Sequence<ConfigurationKeyPath.Step>) -> ConfigurationSchema.Form? {
        steps.reduce(self) { form, step in
            switch step {
            case .key(let name): form?.member(name)
            case .index: form?.element
            }
        }
    }

    // MARK: Reading

    /// Whether the form accepts this type of JSON value. The reader checks the value itself.
    func accepts(_ value: JSONValue) -> Bool {
        value == .null
            || self.alternatives.contains { form in
                switch (form, value) {
                case (.list, .array), (.section, .object), (.map, .object): true
                case (.value(let format), _): format.accepts(value)
                case (.list, _), (.section, _), (.map, _), (.either, _): false
                }
            }
    }

    /// The accepted values in words, following "expected".
    var expectation: String {
        self.alternatives.map { form in
            switch form {
            case .value(let value): value.expectation
            case .list: "an array"
            case .map, .section: "an object"
            case .either: ""
            }
        }.joined(separator: " or ")
    }

    // MARK: Writing

    /// `node` as JSON. A list written as a single value becomes an array.
    func json(_ node: DocumentNode) -> JSONValue {
        switch node.content {
        case .empty: .null
        case .scalar(let text):
            if let value = self.values.first {
                value.json(text)
            } else if let element = self.element {
                .array([element.json(node)])
            } else {
                .string(text)
            }
        case .sequence(let nodes):
            .array(nodes.map { self.element?.json($0) ?? ConfigurationSchema.Form.unknown.json($0) })
        case .mapping(let entries):
            .object(entries.map { .init($0.key, (self.member($0.key) ?? .unknown).json($0.value)) })
        }
    }
}

extension ValueFormat {
    fileprivate func accepts(_ value: JSONValue) -> Bool {
        switch (self, value) {
        case (.orNone, .string("none")), (.boolean, .boolean): true
        // For a fraction, the reader reports the accepted range of integers.
        case (.integer, .integer), (.integer, .number), (.size, .integer), (.size, .number): true
        case (.text, .string), (.size, .string), (.rate, .string), (.duration, .string), (.choice, .string): true
        case (.orNone(let format), _): format.accepts(value)
        case (.text, _), (.integer, _), (.size, _), (.rate, _), (.duration, _), (.boolean, _), (.choice, _): false
        }
    }

    fileprivate var expectation: String {
        switch self {
        case .integer: "a whole number"
        case .boolean: "true or false"
        case .size: "a number of bytes, or a text like 64KiB"
        case .text, .rate, .duration, .choice: "a text"
        case .orNone(let form): "\(form.expectation), or none"
        }
    }

    fileprivate func json(_ text: String) -> JSONValue {
        switch self {
        case .integer, .size: Int(text).map { .integer($0) } ?? .string(text)
        case .boolean: text == "true" || text == "false" ? .boolean(text == "true") : .string(text)
        case .orNone(let form): form.json(text)
        case .text, .rate, .duration, .choice: .string(text)
        }
    }
}
