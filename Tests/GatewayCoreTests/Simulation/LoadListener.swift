import TestSupport

/// An entrance to the gateway of a load: a listener with a route, and the kind of its upstream.
struct LoadListener {
    enum ListenerKind {
        case raw(port: UInt16)
        case web(path: String)
        /// Over TLS.
        case secureWeb(path: String)
    }

    /// The kind of upstream.
    enum UpstreamKind {
        /// Returns its input.
        case echo
        /// Sends `sourceText` and ends, whatever it receives.
        case source
        /// Reads to the end and sends nothing.
        case sink
        /// No upstream, or an unpredictable one.
        case nobody
    }

    /// The bytes that a client receives that waits for its end, if nothing is lost.
    enum ExpectedDelivery {
        /// Every byte, and a clean end.
        case everything
        /// Every byte, and then an end that is not clean.
        case bytes
        /// The route itself may cut it off.
        case nothing
    }

    let entrance: ListenerKind
    let far: UpstreamKind
    var promise = ExpectedDelivery.everything
    /// Each message is answered with one message.
    var keepsMessages = false
    var offersCompression = false
    /// A client that behaves as none should: this, then anything.
    var rudeWords: [UInt8]?

    static let all: [LoadListener] = raw + web + rude

    private static let raw: [LoadListener] = [
        LoadListener(entrance: .raw(port: 1001), far: .echo),
        LoadListener(entrance: .raw(port: 1001), far: .echo),
        LoadListener(entrance: .raw(port: 1002), far: .echo),
        LoadListener(entrance: .raw(port: 1002), far: .echo),
        LoadListener(entrance: .raw(port: 1003), far: .source),
        LoadListener(entrance: .raw(port: 1004), far: .echo),
        LoadListener(entrance: .raw(port: 1006), far: .echo),
        LoadListener(entrance: .raw(port: 1007), far: .echo),
        LoadListener(entrance: .raw(port: 1008), far: .sink),
        LoadListener(entrance: .raw(port: 1009), far: .echo),
        LoadListener(entrance: .raw(port: 1010), far: .echo),
        LoadListener(entrance: .raw(port: 1011), far: .echo, promise: .bytes),
        LoadListener(entrance: .raw(port: 1012), far: .echo, promise: .nothing),
    ]

    private static let web: [LoadListener] = [
        LoadListener(entrance: .web(path: "/stream"), far: .echo),
        LoadListener(entrance: .web(path: "/stream"), far: .echo),
        LoadListener(entrance: .web(path: "/web"), far: .echo, keepsMessages: true),
        LoadListener(entrance: .web(path: "/web"), far: .echo, keepsMessages: true),
        LoadListener(entrance: .web(path: "/packed"), far: .echo, keepsMessages: true, offersCompression: true),
        LoadListener(entrance: .web(path: "/lengths"), far: .echo, keepsMessages: true),
        LoadListener(entrance: .web(path: "/source"), far: .source),
        LoadListener(entrance: .web(path: "/sink"), far: .sink),
        LoadListener(entrance: .web(path: "/nowhere"), far: .nobody, promise: .nothing, keepsMessages: true),
        LoadListener(entrance: .web(path: "/echo"), far: .echo, keepsMessages: true),
        LoadListener(entrance: .web(path: "/aged"), far: .echo, promise: .nothing, keepsMessages: true),
        LoadListener(entrance: .web(path: "/small"), far: .echo, promise: .nothing, keepsMessages: true),
        LoadListener(entrance: .secureWeb(path: "/web"), far: .echo, keepsMessages: true),
        LoadListener(entrance: .secureWeb(path: "/stream"), far: .echo),
    ]

    private static let rude: [LoadListener] = [[UInt8(ascii: "G")], request("/web"), request("/stream")].map { words in
        LoadListener(entrance: .raw(port: 1005), far: .nobody, promise: .nothing, rudeWords: words)
    }

    private static func request(_ path: String) -> [UInt8] {
        Array(RawWebSocketPeer.request(to: path).utf8)
    }

    /// A Close after messages does not prevent their answers: both ends are WebSockets.
    var keepsWhatIsUnderWay: Bool {
        switch self.entrance {
        case .raw: false
        case .web(let path), .secureWeb(let path): ["/web", "/packed", "/echo"].contains(path)
        }
    }

    /// The text of every source.
    static let sourceText = (0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 13) }

    /// The bytes that a client receives after sending `sent`.
    func answer(to sent: [UInt8]) -> [UInt8] {
        switch self.far {
        case .echo: sent
        case .source: Self.sourceText
        case .sink, .nobody: []
        }
    }
}
