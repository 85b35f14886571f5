import TestSupport

/// A way into the gateway of a load, and what is behind it.
struct LoadDoor {
    enum Entrance {
        case raw(port: UInt16)
        case web(path: String)
        /// Over TLS.
        case secureWeb(path: String)
    }

    /// Who answers.
    enum Far {
        /// Says back what it hears.
        case echo
        /// Says `sourceText` and ends, whatever it hears.
        case source
        /// Hears to the end and says nothing.
        case sink
        /// Nobody, or nobody that could be foretold.
        case nobody
    }

    /// What a client gets that waits for its end, where nothing is lost on the way.
    enum Promise {
        /// Every byte, and a clean end.
        case everything
        /// Every byte, and then an end that is not clean.
        case bytes
        /// The route itself may cut it off.
        case nothing
    }

    let entrance: Entrance
    let far: Far
    var promise = Promise.everything
    /// Messages come back one for one.
    var keepsMessages = false
    var offersCompression = false
    /// A client that behaves as none should: this, then anything.
    var rudeWords: [UInt8]?

    static let all: [LoadDoor] = raw + web + rude

    private static let raw: [LoadDoor] = [
        LoadDoor(entrance: .raw(port: 1001), far: .echo),
        LoadDoor(entrance: .raw(port: 1001), far: .echo),
        LoadDoor(entrance: .raw(port: 1002), far: .echo),
        LoadDoor(entrance: .raw(port: 1002), far: .echo),
        LoadDoor(entrance: .raw(port: 1003), far: .source),
        LoadDoor(entrance: .raw(port: 1004), far: .echo),
        LoadDoor(entrance: .raw(port: 1006), far: .echo),
        LoadDoor(entrance: .raw(port: 1007), far: .echo),
        LoadDoor(entrance: .raw(port: 1008), far: .sink),
        LoadDoor(entrance: .raw(port: 1009), far: .echo),
        LoadDoor(entrance: .raw(port: 1010), far: .echo),
        LoadDoor(entrance: .raw(port: 1011), far: .echo, promise: .bytes),
        LoadDoor(entrance: .raw(port: 1012), far: .echo, promise: .nothing),
    ]

    private static let web: [LoadDoor] = [
        LoadDoor(entrance: .web(path: "/stream"), far: .echo),
        LoadDoor(entrance: .web(path: "/stream"), far: .echo),
        LoadDoor(entrance: .web(path: "/web"), far: .echo, keepsMessages: true),
        LoadDoor(entrance: .web(path: "/web"), far: .echo, keepsMessages: true),
        LoadDoor(entrance: .web(path: "/packed"), far: .echo, keepsMessages: true, offersCompression: true),
        LoadDoor(entrance: .web(path: "/lengths"), far: .echo, keepsMessages: true),
        LoadDoor(entrance: .web(path: "/source"), far: .source),
        LoadDoor(entrance: .web(path: "/sink"), far: .sink),
        LoadDoor(entrance: .web(path: "/nowhere"), far: .nobody, promise: .nothing, keepsMessages: true),
        LoadDoor(entrance: .web(path: "/echo"), far: .echo, keepsMessages: true),
        LoadDoor(entrance: .web(path: "/aged"), far: .echo, promise: .nothing, keepsMessages: true),
        LoadDoor(entrance: .web(path: "/small"), far: .echo, promise: .nothing, keepsMessages: true),
        LoadDoor(entrance: .secureWeb(path: "/web"), far: .echo, keepsMessages: true),
        LoadDoor(entrance: .secureWeb(path: "/stream"), far: .echo),
    ]

    private static let rude: [LoadDoor] = [[UInt8(ascii: "G")], request("/web"), request("/stream")].map { words in
        LoadDoor(entrance: .raw(port: 1005), far: .nobody, promise: .nothing, rudeWords: words)
    }

    private static func request(_ path: String) -> [UInt8] {
        Array(RawWebSocketPeer.request(to: path).utf8)
    }

    /// A Close behind messages leaves them their answers: both ends are WebSockets.
    var keepsWhatIsUnderWay: Bool {
        switch self.entrance {
        case .raw: false
        case .web(let path), .secureWeb(let path): ["/web", "/packed", "/echo"].contains(path)
        }
    }

    /// What every source says.
    static let sourceText = (0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 13) }

    /// What a client is to hear that said `sent`.
    func answer(to sent: [UInt8]) -> [UInt8] {
        switch self.far {
        case .echo: sent
        case .source: Self.sourceText
        case .sink, .nobody: []
        }
    }
}
