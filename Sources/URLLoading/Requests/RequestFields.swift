/// The header fields of a request: one value a name, names told apart without regard to the case of ASCII letters.
/// A name is kept as it was first given.
struct RequestFields: Hashable, Sendable {
    /// `nil` until something is set.
    private(set) var values: [String: String]?

    init() {}

    /// Where two names differ in case alone, the later in alphabetical order counts. What cannot be sent is left out.
    init(_ values: [String: String]?) {
        guard let values else { return }
        self.values = [:]
        for (name, value) in values.sorted(by: { $0.key < $1.key }) { self.set(value, for: name) }
    }

    func value(for name: String) -> String? {
        guard let values else { return nil }
        return values[name] ?? self.key(for: name).flatMap { values[$0] }
    }

    /// Nothing changes when the name or the value cannot be sent.
    mutating func set(_ value: String?, for name: String) {
        guard let value else {
            if let key = self.key(for: name) { self.values?[key] = nil }
            return
        }
        guard name.isFieldName, value.isFieldValue else { return }
        let key = self.key(for: name) ?? name
        self.values = self.values ?? [:]
        self.values?[key] = value
    }

    /// Behind a comma, where there is a value already (RFC 9110 §5.3).
    mutating func add(_ value: String, for name: String) {
        guard value.isFieldValue else { return }
        self.set(self.value(for: name).map { "\($0),\(value)" } ?? value, for: name)
    }

    private func key(for name: String) -> String? {
        guard let values else { return nil }
        return values[name] == nil ? values.keys.first { $0.isSameFieldName(as: name) } : name
    }
}
