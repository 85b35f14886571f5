/// Checks what no single value shows: names, references, and what excludes each other.
///
/// Values that could not be read are left alone, so that one mistake is told once.
struct ConfigurationValidator {
    let configuration: GatewayConfiguration
    let problems: ProblemCollector

    static let listeners = ConfigurationKeyPath.root.key(GatewayKey.listeners)
    static let routes = ConfigurationKeyPath.root.key(GatewayKey.routes)
    static let control = ConfigurationKeyPath.root.key(GatewayKey.control)
    static let upstreams = ConfigurationKeyPath.root.key(GatewayKey.upstreams)

    init(_ configuration: GatewayConfiguration, problems: ProblemCollector) {
        self.configuration = configuration
        self.problems = problems
    }

    func validate() {
        self.validatePresence()
        self.validateNames(self.configuration.listeners.map(\.name), in: Self.listeners, of: "listener")
        self.validateNames(self.configuration.routes.map(\.name), in: Self.routes, of: "route")
        self.validateNames(self.configuration.upstreams.map(\.name), in: Self.upstreams, of: "upstream")
        self.validateListeners()
        self.validateRoutes()
        self.validateUpstreams()
        self.validateHandshakes()
        self.validateRequests()
    }

    private func validatePresence() {
        if self.configuration.listeners.isEmpty, self.problems.isSound(Self.listeners) {
            self.problems.add(
                at: Self.listeners, expected: "at least one listener", remedy: "add listeners: with a name and listen")
        }
        if self.configuration.routes.isEmpty, self.problems.isSound(Self.routes) {
            self.problems.add(
                at: Self.routes, expected: "at least one route", remedy: "add routes: with a name, a path and a target")
        }
    }

    private func validateNames(_ names: [String], in list: ConfigurationKeyPath, of kind: String) {
        var first: [String: Int] = [:]
        for (index, name) in names.enumerated() where !name.isEmpty {
            if let earlier = first[name] {
                self.problems.add(
                    at: list.index(index).key("name"), expected: "a name that no other \(kind) has",
                    found: "\(QuotedText.quoted(name)), the name of \(list.index(earlier))", remedy: "choose another")
            } else {
                first[name] = index
            }
        }
    }

    /// Whether every name in `list` could be read, so that a name not among them is truly unknown.
    func areNamesKnown(_ count: Int, in list: ConfigurationKeyPath) -> Bool {
        self.problems.isSound(list)
            && (0..<count).allSatisfy { self.problems.isSound(list.index($0).key("name")) }
    }

    /// Notes a reference to something that is not there.
    func reportUnknown(_ name: String, at path: ConfigurationKeyPath, among names: [String], kind: String) {
        let suggestion = Spelling.nearest(to: name, among: names).map { "did you mean \($0)?" }
        let known = names.isEmpty ? "there is none" : "there are \(names.prefix(10).joined(separator: ", "))"
        self.problems.add(
            at: path, expected: "the name of \(kind)", found: QuotedText.quoted(name), remedy: suggestion ?? known)
    }
}
