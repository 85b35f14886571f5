/// Finds options of a bridge that do not apply to its LISTEN and TARGET, or that require or exclude each other. The
/// configuration's checks find them too, but would name keys that are not on the command line.
struct BridgeAudit {
    private let request: BridgeRequest
    /// `nil` if LISTEN cannot be parsed; checks that need it are then skipped.
    private let listen: ListenerKind?
    private let target: Target

    private enum Target {
        case endpoint(EndpointURL)
        /// `echo` and `chat`.
        case builtIn
        /// A file has them.
        case several
        case unparsable

        var speaksTLS: Bool? { self.value { $0.scheme.speaksTLS } }
        var speaksWebSocket: Bool? { self.value { $0.scheme.speaksWebSocket } }

        private func value(_ ask: (EndpointURL) -> Bool) -> Bool? {
            switch self {
            case .endpoint(let url): ask(url)
            case .builtIn, .several: false
            case .unparsable: nil
            }
        }
    }

    init(_ request: BridgeRequest) {
        self.request = request
        self.listen = (try? ListenURL(request.listen))?.kind
        if request.options.contains(where: { $0.name == .targets }) {
            self.target = .several
        } else if request.target == "echo" || request.target == "chat" {
            self.target = .builtIn
        } else {
            self.target = (try? EndpointURL(request.target)).map { .endpoint($0) } ?? .unparsable
        }
    }

    /// The problems, and the bridge without its invalid options: later checks then do not report the same mistake
    /// again.
    func findings() -> (problems: [ConfigurationProblem], corrected: BridgeRequest) {
        var corrected = self.request
        let misplaced = BridgeOption.allCases.filter { self.has($0) && self.isMisplaced($0) }
        corrected.options.removeAll { misplaced.contains($0.name) }
        if misplaced.contains(.targets) { corrected.target = "echo" }
        let problems = misplaced.map(self.misplacedProblem)
        let others = [
            self.missingTarget(&corrected), self.severalTargets(&corrected), self.missingCertificate(&corrected),
            self.missingAuthority(&corrected), self.missingIdentity(&corrected),
            self.missingName(&corrected), self.contradiction(&corrected), self.unknownProxyWord(&corrected),
            self.proxyToNowhere(&corrected),
        ]
        return (problems + others.compactMap(\.self), corrected)
    }

    private func has(_ option: BridgeOption) -> Bool { self.request.options.contains { $0.name == option } }

    private func problem(
        _ option: BridgeOption, expected: String, found: String, remedy: String
    ) -> ConfigurationProblem {
        ConfigurationProblem(
            origin: .option(option.argument), keyPath: .root, expected: expected, found: found, remedy: remedy)
    }

    private var foundTarget: String {
        if case .several = self.target { "--targets" } else { QuotedText.quoted(self.request.target) }
    }

    // MARK: Options that need a kind of listener or target

    private func isMisplaced(_ option: BridgeOption) -> Bool {
        switch option.requirement {
        case .nothing: false
        case .secureListener: self.listen?.speaksTLS == false
        case .secureTarget: self.target.speaksTLS == false
        case .webSocketListener: self.listen?.speaksWebSocket == false
        case .webSocketTarget: self.target.speaksWebSocket == false
        case .anyWebSocket: self.listen?.speaksWebSocket == false && self.target.speaksWebSocket == false
        case .messages:
            !self.isChat && self.listen?.speaksWebSocket == false && self.target.speaksWebSocket == false
        case .webSocketAndStream: self.joinsWebSocketAndStream == false
        case .messagesAndStream:
            self.isChat ? self.listen?.speaksWebSocket == true : self.joinsWebSocketAndStream == false
        case .handshake:
            self.listen.map { !$0.speaksWebSocket && !$0.speaksTLS } == true && !self.expectsProxyHeader
        case .address: if case .builtIn = self.target { true } else { false }
        }
    }

    private var isChat: Bool { if case .builtIn = self.target { self.request.target == "chat" } else { false } }

    /// `nil` if that is not known.
    private var joinsWebSocketAndStream: Bool? {
        if case .builtIn = self.target { return false }
        guard let listen = self.listen?.speaksWebSocket, let target = self.target.speaksWebSocket else { return nil }
        return listen != target
    }

    private var expectsProxyHeader: Bool { self.proxyWords.contains("in") }

    private var proxyWords: [String] {
        self.request.options.filter { $0.name == .proxyProtocol }.compactMap(\.text).flatMap {
            $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        }
    }

    private func misplacedProblem(_ option: BridgeOption) -> ConfigurationProblem {
        let listen = QuotedText.quoted(self.request.listen)
        let target = self.foundTarget
        let both = "\(listen) and \(target)"
        let (expected, found) =
            switch option.requirement {
            case .nothing, .anyWebSocket, .messages: ("LISTEN or TARGET to begin with ws:// or wss://", both)
            case .webSocketAndStream, .messagesAndStream:
                ("either LISTEN or TARGET to begin with ws:// or wss://, and the other to be a stream", both)
            case .secureListener: ("LISTEN to begin with tls:// or wss://", listen)
            case .secureTarget: ("TARGET to begin with tls:// or wss://", target)
            case .webSocketListener: ("LISTEN to begin with ws:// or wss://", listen)
            case .webSocketTarget: ("TARGET to begin with ws:// or wss://", target)
            case .handshake: ("LISTEN to begin with tls://, ws:// or wss://, or --proxy-protocol in", listen)
            case .address: ("TARGET to be an address", target)
            }
        return self.problem(
            option, expected: expected, found: found, remedy: "change it, or leave out \(option.argument)")
    }

    // MARK: Options that require or exclude each other

    private func missingCertificate(_ corrected: inout BridgeRequest) -> ConfigurationProblem? {
        guard let listen, listen.speaksTLS, !self.has(.certificate) else { return nil }
        corrected.options.append(.init(.certificate, "certificate.pem"))
        return self.problem(
            .certificate, expected: "a certificate for LISTEN", found: "none",
            remedy: "add --certificate FILE and --key FILE, or begin LISTEN with "
                + (listen.speaksWebSocket ? "ws://" : "tcp://"))
    }

    private func missingAuthority(_ corrected: inout BridgeRequest) -> ConfigurationProblem? {
        guard self.has(.clientCRL), !self.has(.clientCA), self.listen?.speaksTLS == true else { return nil }
        corrected.options.append(.init(.clientCA, "authority.pem"))
        return self.problem(
            .clientCRL, expected: "--client-ca with it", found: "none", remedy: "add --client-ca FILE")
    }

    private func missingTarget(_ corrected: inout BridgeRequest) -> ConfigurationProblem? {
        guard self.request.target.isEmpty, !self.has(.targets) else { return nil }
        corrected.target = "echo"
        return ConfigurationProblem(
            origin: .option("TARGET"), keyPath: .root, expected: "an address to connect to, echo or chat",
            found: "nothing", remedy: "add it, or --targets FILE")
    }

    /// The targets of a file have default settings.
    private func severalTargets(_ corrected: inout BridgeRequest) -> ConfigurationProblem? {
        guard self.has(.targets) else { return nil }
        guard self.request.target.isEmpty else {
            if corrected.options.contains(where: { $0.name == .targets }) { corrected.target = "" }
            return self.problem(
                .targets, expected: "either TARGET or --targets", found: "both", remedy: "leave out one of the two")
        }
        guard self.has(.connectTimeout) else { return nil }
        corrected.options.removeAll { $0.name == .connectTimeout }
        return self.problem(
            .connectTimeout, expected: "TARGET with it", found: "--targets", remedy: "leave out --connect-timeout")
    }

    private func missingIdentity(_ corrected: inout BridgeRequest) -> ConfigurationProblem? {
        guard self.has(.clientKey), !self.has(.clientCertificate), self.target.speaksTLS == true else { return nil }
        corrected.options.append(.init(.clientCertificate, "certificate.pem"))
        return self.problem(
            .clientKey, expected: "--client-certificate with it", found: "none",
            remedy: "add --client-certificate FILE")
    }

    private func proxyToNowhere(_ corrected: inout BridgeRequest) -> ConfigurationProblem? {
        guard self.request.proxy != nil else { return nil }
        switch self.target {
        case .endpoint, .unparsable: return nil
        case .builtIn, .several: break
        }
        corrected.proxy = nil
        return ConfigurationProblem(
            origin: .option(self.request.proxySource), keyPath: .root, expected: "TARGET to be an address",
            found: self.foundTarget, remedy: "leave out \(self.request.proxySource)")
    }

    private func missingName(_ corrected: inout BridgeRequest) -> ConfigurationProblem? {
        guard case .endpoint(let url) = self.target, url.scheme.speaksTLS, url.hostName == nil,
            !self.has(.serverName), !self.has(.insecure)
        else { return nil }
        corrected.options.append(.init(.serverName, "localhost"))
        return self.problem(
            .serverName, expected: "the name to verify over a Unix socket", found: "none",
            remedy: "add --server-name NAME, or --insecure for a test")
    }

    private func contradiction(_ corrected: inout BridgeRequest) -> ConfigurationProblem? {
        guard self.has(.insecure), self.target.speaksTLS == true,
            let rival = [BridgeOption.ca, .crl].first(where: self.has)
        else { return nil }
        corrected.options.removeAll { $0.name == .insecure }
        return self.problem(
            .insecure, expected: "either \(rival.argument) or --insecure", found: "both",
            remedy: "leave out one of them")
    }

    /// `in` and `out` are words of the command line alone, so a configuration's list of versions would not name them.
    private func unknownProxyWord(_ corrected: inout BridgeRequest) -> ConfigurationProblem? {
        let known = ["in", "out", "v1", "v2"]
        let words = self.proxyWords
        let problem: ConfigurationProblem
        if let stranger = words.first(where: { !known.contains($0) }) {
            problem = self.problem(
                .proxyProtocol, expected: "one of \(known.joined(separator: ", "))", found: QuotedText.quoted(stranger),
                remedy: "separate several with commas, like in,v1")
        } else if words.contains("v1"), words.contains("v2") {
            problem = self.problem(
                .proxyProtocol, expected: "one version towards TARGET", found: "v1 and v2",
                remedy: "leave out one of them")
        } else {
            return nil
        }
        corrected.options.removeAll { $0.name == .proxyProtocol }
        return problem
    }
}
