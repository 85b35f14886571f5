import Foundation

extension URLRequest {
    /// All fields by name; `nil` while none was ever set. Names or values that would break the header are left out.
    public var allHTTPHeaderFields: [String: String]? {
        get { self.fields.values }
        set { self.fields = RequestFields(newValue) }
    }

    /// The field's value; names are told apart without regard to case.
    public func value(forHTTPHeaderField field: String) -> String? { self.fields.value(for: field) }

    /// Sets the field, or takes it away. Nothing changes where the name is no token, or where the value holds a NUL or
    /// a line end that no blank follows: such a value would begin another field.
    public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) {
        self.fields.set(value, for: field)
    }

    /// Adds to the field, behind a comma if it has a value already.
    public mutating func addValue(_ value: String, forHTTPHeaderField field: String) {
        self.fields.add(value, for: field)
    }

    /// The body as bytes. Setting it takes the stream away.
    public var httpBody: Data? {
        get { if case .data(let data) = self.body { data } else { nil } }
        set { self.body = newValue.map(RequestBody.data) ?? .none }
    }

    /// The body as a stream that is not open yet. Setting it takes the bytes away.
    public var httpBodyStream: InputStream? {
        get { if case .stream(let stream) = self.body { stream } else { nil } }
        set { self.body = newValue.map(RequestBody.stream) ?? .none }
    }
}
