/// A way into the gateway of a load, and what is behind it.
struct LoadDoor {
    enum Entrance {
        case raw(port: UInt16)
        case web(path: String)
    }

    /// Who answers.
    enum Far {
        /// Says back what it hears.
        case echo
        /// Says this and ends, whatever it hears.
        case source
        /// Hears to the end and says nothing.
        case sink
        /// Cannot be reached.
        case nobody
    }

    let entrance: Entrance
    let far: Far
    /// Messages come back one for one.
    var keepsMessages = false
    var offersCompression = false
    /// The gateway itself says the end when it drains.
    var isEndpoint = false

    static let all: [LoadDoor] = [
        LoadDoor(entrance: .raw(port: 1001), far: .echo),
        LoadDoor(entrance: .raw(port: 1001), far: .echo),
        LoadDoor(entrance: .raw(port: 1002), far: .echo),
        LoadDoor(entrance: .raw(port: 1002), far: .echo),
        LoadDoor(entrance: .raw(port: 1003), far: .source),
        LoadDoor(entrance: .raw(port: 1004), far: .echo, isEndpoint: true),
        LoadDoor(entrance: .raw(port: 1006), far: .echo),
        LoadDoor(entrance: .raw(port: 1007), far: .echo),
        LoadDoor(entrance: .raw(port: 1008), far: .sink),
        LoadDoor(entrance: .raw(port: 1009), far: .echo),
        LoadDoor(entrance: .raw(port: 1010), far: .echo),
        LoadDoor(entrance: .web(path: "/stream"), far: .echo),
        LoadDoor(entrance: .web(path: "/stream"), far: .echo),
        LoadDoor(entrance: .web(path: "/web"), far: .echo, keepsMessages: true),
        LoadDoor(entrance: .web(path: "/web"), far: .echo, keepsMessages: true),
        LoadDoor(entrance: .web(path: "/packed"), far: .echo, keepsMessages: true, offersCompression: true),
        LoadDoor(entrance: .web(path: "/lengths"), far: .echo, keepsMessages: true),
        LoadDoor(entrance: .web(path: "/source"), far: .source),
        LoadDoor(entrance: .web(path: "/sink"), far: .sink),
        LoadDoor(entrance: .web(path: "/nowhere"), far: .nobody, keepsMessages: true),
        LoadDoor(entrance: .web(path: "/echo"), far: .echo, keepsMessages: true, isEndpoint: true),
    ]

    /// A Close behind messages leaves them their answers: both ends are WebSockets.
    var keepsWhatIsUnderWay: Bool {
        switch self.entrance {
        case .raw: false
        case .web(let path): ["/web", "/packed", "/echo"].contains(path)
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
