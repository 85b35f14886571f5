/// Name of a key of `Settings`. Names that code refers to are static members, declared beside the settings.
package struct SettingsKeyName<Settings>: RawRepresentable, ExpressibleByStringLiteral, Sendable, Hashable {
    package let rawValue: String

    package init(rawValue: String) { self.rawValue = rawValue }

    package init(stringLiteral name: String) { self.rawValue = name }
}

/// Declares one key of a configuration: its name, the property that it sets, its syntax with range, and its text. All
/// that deals with keys is made from these declarations: reading, validation, the schema, the reference article, and
/// the options of `sluice bridge`. The default is the property's initial value.
///
/// The optimizer must not specialize the functions that make and read keys: a copy of them for each key is a third of the
/// time to compile this module, and a configuration is read once.
struct SettingsKey<Settings>: Sendable {
    typealias Name = SettingsKeyName<Settings>
    typealias Property<Value> = any WritableKeyPath<Settings, Value> & Sendable
    typealias Read = @Sendable (SectionReader<Settings>, inout Settings) -> Void

    let name: Name
    let form: ConfigurationSchema.Form
    let isRequired: Bool
    /// What the key sets, and the effect at its limit: sentences in Markdown.
    let text: String
    /// An explicit example in YAML; `nil` takes one from the form.
    let example: String?
    /// Whether a change takes effect at the next start only.
    let needsRestart: Bool
    /// The default in YAML or, where another setting decides, in words; `nil` if there is none.
    let defaultText: @Sendable (Settings) -> String?
    let read: Read

    /// A key with a form or reading of its own.
    @_semantics("optimize.sil.specialize.generic.never")
    static func custom(
        _ name: Name, _ form: ConfigurationSchema.Form, isRequired: Bool = false, default defaultText: String? = nil,
        example: String? = nil, needsRestart: Bool = false, _ text: String, read: @escaping Read
    ) -> Self {
        Self(
            name: name, form: form, isRequired: isRequired, text: text, example: example, needsRestart: needsRestart,
            defaultText: { _ in defaultText }, read: read)
    }

    /// A value with a default.
    ///
    /// - Parameters:
    ///   - defaultText: replaces the property's initial value in the reference, if another setting decides.
    ///   - note: follows the initial value in the reference.
    @_semantics("optimize.sil.specialize.generic.never")
    static func value<Value>(
        _ name: Name, _ property: Property<Value>, _ syntax: ValueSyntax<Value>,
        default defaultText: String? = nil, defaultNote note: String = "", example: String? = nil,
        needsRestart: Bool = false, _ text: String
    ) -> Self {
        Self(
            name: name, form: .value(syntax.form), isRequired: false, text: text, example: example,
            needsRestart: needsRestart,
            defaultText: {
                let initial = syntax.text($0[keyPath: property])
                return defaultText ?? (initial.isEmpty ? nil : "`\(initial)`" + note)
            }
        ) { section, settings in
            if let value = section.value(name, as: syntax) { settings[keyPath: property] = value }
        }
    }

    /// A value that the word `none` turns off.
    static func orNone<Value>(
        _ name: Name, _ property: Property<Value?>, _ syntax: ValueSyntax<Value>,
        default defaultText: String? = nil, example: String? = nil, _ text: String
    ) -> Self {
        .value(name, property, syntax.orNone, default: defaultText, example: example, text)
    }

    /// A value without a default.
    @_semantics("optimize.sil.specialize.generic.never")
    static func optional<Value>(
        _ name: Name, _ property: Property<Value?>, _ syntax: ValueSyntax<Value>,
        default defaultText: String? = nil, example: String? = nil, needsRestart: Bool = false, _ text: String
    ) -> Self {
        .custom(
            name, .value(syntax.form), default: defaultText, example: example, needsRestart: needsRestart, text
        ) { section, settings in
            if let value = section.value(name, as: syntax) { settings[keyPath: property] = value }
        }
    }

    @_semantics("optimize.sil.specialize.generic.never")
    static func required<Value>(
        _ name: Name, _ property: Property<Value>, _ syntax: ValueSyntax<Value>,
        _ text: String
    ) -> Self {
        .custom(name, .value(syntax.form), isRequired: true, text) { section, settings in
            section.require(name)
            if let value = section.value(name, as: syntax) { settings[keyPath: property] = value }
        }
    }

    /// A list of different values; a single value counts as a list of one.
    ///
    /// - Parameter defaultText: replaces the property's initial value in the reference.
    @_semantics("optimize.sil.specialize.generic.never")
    static func list<Value: Hashable>(
        _ name: Name, _ property: Property<[Value]>, _ syntax: ValueSyntax<Value>,
        default defaultText: String? = nil, example: String? = nil, _ text: String
    ) -> Self {
        Self(
            name: name, form: .list(.value(syntax.form)), isRequired: false, text: text, example: example,
            needsRestart: false,
            defaultText: {
                let initial = $0[keyPath: property].map(syntax.text).joined(separator: ", ")
                return defaultText ?? (initial.isEmpty ? nil : "`[\(initial)]`")
            }
        ) { section, settings in
            if let values = section.list(name, as: syntax) { settings[keyPath: property] = values }
        }
    }

    /// A mapping.
    static func section<Inner: SettingsSection>(
        _ name: Name, _ property: Property<Inner>, example: String, _ text: String
    ) -> Self {
        .custom(name, .of(Inner.self), default: "its keys' defaults", example: example, text) { section, settings in
            if let inner: Inner = section.section(name) { settings[keyPath: property] = inner }
        }
    }

    /// A mapping without which a feature is off.
    static func section<Inner: SettingsSection>(
        _ name: Name, optional property: Property<Inner?>, example: String, _ text: String
    ) -> Self {
        .custom(name, .of(Inner.self), example: example, text) { section, settings in
            settings[keyPath: property] = section.section(name)
        }
    }

    /// A list of mappings.
    static func sections<Inner: SettingsSection>(
        _ name: Name, _ property: Property<[Inner]>, example: String, _ text: String
    ) -> Self {
        .custom(name, .list(.of(Inner.self)), example: example, text) { section, settings in
            settings[keyPath: property] = section.sections(name)
        }
    }

    /// Keys of a group of settings that are written in the mapping of `Settings`.
    @_semantics("optimize.sil.specialize.generic.never")
    static func group<Inner>(
        _ keys: [SettingsKey<Inner>], _ property: Property<Inner>
    ) -> [Self] {
        keys.map { key in
            Self(
                name: Name(rawValue: key.name.rawValue), form: key.form, isRequired: key.isRequired, text: key.text,
                example: key.example, needsRestart: key.needsRestart,
                defaultText: { key.defaultText($0[keyPath: property]) }
            ) { section, settings in
                key.read(section.group(), &settings[keyPath: property])
            }
        }
    }
}

extension ConfigurationSchema.Form {
    /// The form of a mapping with the keys of `Settings`.
    static func of<Settings: SettingsSection>(_ settings: Settings.Type) -> Self {
        .section(ConfigurationSchema.Section(settings))
    }

    @_semantics("optimize.sil.specialize.generic.never")
    static func value<Value>(_ syntax: ValueSyntax<Value>) -> Self { .value(syntax.form) }
}

extension ConfigurationSchema.Section {
    init<Settings: SettingsSection>(_ settings: Settings.Type) {
        let initial = Settings.initial
        self.init(
            name: Settings.sectionName,
            keys: Settings.keys.map { key in
                ConfigurationSchema.Key(
                    name: key.name.rawValue, form: key.form, isRequired: key.isRequired, text: key.text,
                    defaultText: key.isRequired ? nil : key.defaultText(initial), explicitExample: key.example,
                    needsRestart: key.needsRestart)
            })
    }
}

/// Ranges that several keys share.
extension ClosedRange<Duration> {
    /// 10 ms to 10 min.
    static var attempt: Self { .milliseconds(10) ... .seconds(600) }
    /// 1 s to 365 days.
    static var lifetime: Self { .seconds(1) ... .seconds(365 * 86_400) }
    /// 0 to 1 day.
    static var day: Self { .zero ... .seconds(86_400) }
}
