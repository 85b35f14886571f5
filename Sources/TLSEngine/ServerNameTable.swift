/// Picks values by the name a client asks for: an exact name before a wildcard of one label (RFC 9525 §6.3).
struct ServerNameTable<Value> {
    private var exact: [String: [Value]] = [:]
    private var wildcard: [String: [Value]] = [:]

    /// Adds `value` under a DNS name or `*.name`; letters' case and a final dot do not matter.
    mutating func add(_ value: Value, for name: String) {
        let name = Self.normalize(name)
        if name.hasPrefix("*.") {
            self.wildcard[String(name.dropFirst(2)), default: []].append(value)
        } else {
            self.exact[name, default: []].append(value)
        }
    }

    /// Everything under `name`, in the order of adding; empty if nothing is.
    func values(for name: String) -> [Value] {
        let name = Self.normalize(name)
        if let values = self.exact[name] { return values }
        guard let dot = name.firstIndex(of: "."), dot != name.startIndex else { return [] }
        return self.wildcard[String(name[name.index(after: dot)...])] ?? []
    }

    static func normalize(_ name: String) -> String {
        let lower = name.lowercased()
        return lower.hasSuffix(".") ? String(lower.dropLast()) : lower
    }
}
