import WireText

/// Where Redis is, from one URL of the configuration:
///
/// - `redis://[[user]:password@]host[:port][/database]`, `rediss://` with TLS
/// - `unix://[[user]:password@]/path[?db=database]`
/// - `redis+sentinel://[[user]:password@]host[:port],…/name[/database]`, `rediss+sentinel://`
/// - `redis+cluster://[[user]:password@]host[:port],…`, `rediss+cluster://`
///
/// User, password, path and name may be percent-encoded. No description contains the password.
package struct RedisAddress: Equatable, Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    package enum Location: Equatable, Sendable {
        case server(RedisEndpoint)
        case unixSocket(path: String)
        /// - Parameter name: of the primary in the sentinels' configuration.
        case sentinels([RedisEndpoint], name: String)
        /// Nodes to ask for the others.
        case cluster([RedisEndpoint])
    }

    package static let defaultPort = 6379
    package static let defaultSentinelPort = 26379
    /// Most hosts in one URL.
    package static let maximumHosts = 64
    /// Longest path of a Unix socket, in bytes (`sockaddr_un`).
    package static let maximumSocketPath = 107

    package let location: Location
    package let usesTLS: Bool
    /// Of the Redis servers; sentinels have none, or others.
    package private(set) var credentials: RedisCredentials?
    package let database: Int

    /// Redis on this machine, as it is installed.
    package static let local = RedisAddress(.server(RedisEndpoint(host: "localhost", port: RedisAddress.defaultPort)))

    private init(_ location: Location) {
        self.location = location
        self.usesTLS = false
        self.credentials = nil
        self.database = 0
    }

    /// - Throws: the first problem. It never quotes the text, which may contain a password in the wrong place.
    package init(_ text: String) throws(RedisAddressProblem) {
        var parts = try AddressParts(text)
        self.usesTLS = parts.scheme.usesTLS
        self.credentials = try parts.credentials()
        switch parts.scheme.kind {
        case .server:
            let hosts = try parts.hosts(defaultPort: Self.defaultPort, limit: 1)
            self.location = .server(hosts[0])
            self.database = try parts.database(inPath: 0)
        case .unixSocket:
            self.location = .unixSocket(path: try parts.socketPath())
            self.database = try parts.databaseInQuery()
        case .sentinel:
            let hosts = try parts.hosts(defaultPort: Self.defaultSentinelPort, limit: Self.maximumHosts)
            self.location = .sentinels(hosts, name: try parts.primaryName())
            self.database = try parts.database(inPath: 1)
        case .cluster:
            self.location = .cluster(try parts.hosts(defaultPort: Self.defaultPort, limit: Self.maximumHosts))
            self.database = 0
            guard try parts.database(inPath: 0) == 0 else { throw RedisAddressProblem(.databaseOfCluster) }
        }
        try parts.expectNoQuery()
    }

    /// The same servers with these credentials.
    package func using(_ credentials: RedisCredentials) -> RedisAddress {
        var address = self
        address.credentials = credentials
        return address
    }

    package var description: String {
        let tls = self.usesTLS ? "s" : ""
        let user = self.credentials.map { credentials in
            PercentCoding.encoded(credentials.user ?? "") + ":***@"
        }
        let before = user ?? ""
        func list(_ endpoints: [RedisEndpoint]) -> String { endpoints.map(\.description).joined(separator: ",") }
        switch self.location {
        case .server(let endpoint): return "redis\(tls)://\(before)\(endpoint)/\(self.database)"
        case .unixSocket(let path): return "unix://\(before)\(path)?db=\(self.database)"
        case .sentinels(let endpoints, let name):
            return "redis\(tls)+sentinel://\(before)\(list(endpoints))/\(PercentCoding.encoded(name))/\(self.database)"
        case .cluster(let endpoints): return "redis\(tls)+cluster://\(before)\(list(endpoints))"
        }
    }

    package var debugDescription: String { self.description }
}

/// An invalid URL of a Redis server: the problem, its place, and the remedy.
package struct RedisAddressProblem: Error, Equatable, Sendable, CustomStringConvertible {
    package enum Kind: Equatable, Sendable {
        case unknownScheme
        case malformedCredentials
        case userWithoutPassword
        case missingHost
        /// - Parameter number: of the host in the list, from 1.
        case malformedHost(number: Int)
        case malformedPort(number: Int)
        case tooManyHosts(limit: Int)
        case missingSocketPath
        case socketPathTooLong(limit: Int)
        case missingPrimaryName
        case malformedPath
        case malformedDatabase
        case databaseOfCluster
        case unknownParameter
        case fragment
    }

    package let kind: Kind

    init(_ kind: Kind) {
        self.kind = kind
    }

    package var description: String {
        switch self.kind {
        case .unknownScheme:
            "The URL of Redis has an unknown scheme. Begin it with redis://, rediss://, unix://, redis+sentinel:// or "
                + "redis+cluster://."
        case .malformedCredentials:
            "User or password in the URL of Redis is not percent-encoded correctly. Write % as %25, @ as %40, / as %2F."
        case .userWithoutPassword:
            "The URL of Redis has a user without password. Write user:password@, or :password@ for the user default."
        case .missingHost: "The URL of Redis has no host. Write it behind ://, or behind the @."
        case .malformedHost(let number):
            "Host \(number) in the URL of Redis is not a name or an address. Write IPv6 addresses in brackets, and "
                + "@, / and ? of a password as %40, %2F and %3F."
        case .malformedPort(let number):
            "The port of host \(number) in the URL of Redis is not a number from 1 to 65535."
        case .tooManyHosts(let limit):
            "The URL of Redis has more than \(limit) hosts. Lists belong to redis+sentinel:// and redis+cluster://."
        case .missingSocketPath: "The URL of Redis has no path of a socket. Write unix:///run/redis/redis.sock."
        case .socketPathTooLong(let limit):
            "The path of Redis' socket is longer than \(limit) bytes. Use a shorter one."
        case .missingPrimaryName:
            "The URL of Redis names no primary. Write its name in the sentinels' configuration as the path: "
                + "redis+sentinel://host/name."
        case .malformedPath: "The path in the URL of Redis has too many parts, or is not percent-encoded correctly."
        case .malformedDatabase: "The database in the URL of Redis is not a number from 0 to 2147483647."
        case .databaseOfCluster:
            "The URL of a Redis cluster names a database. A cluster has only database 0: remove it."
        case .unknownParameter: "The URL of Redis has a query that is not known. Only unix:// has one: ?db=NUMBER."
        case .fragment: "The URL of Redis contains a #. Write it as %23."
        }
    }
}

/// The URL, cut into its parts.
private struct AddressParts {
    struct Scheme {
        enum Kind { case server, unixSocket, sentinel, cluster }

        let kind: Kind
        let usesTLS: Bool
    }

    private static let schemes: [String: Scheme] = [
        "redis": Scheme(kind: .server, usesTLS: false), "rediss": Scheme(kind: .server, usesTLS: true),
        "unix": Scheme(kind: .unixSocket, usesTLS: false),
        "redis+sentinel": Scheme(kind: .sentinel, usesTLS: false),
        "rediss+sentinel": Scheme(kind: .sentinel, usesTLS: true),
        "redis+cluster": Scheme(kind: .cluster, usesTLS: false),
        "rediss+cluster": Scheme(kind: .cluster, usesTLS: true),
    ]

    let scheme: Scheme
    private let userInfo: Substring?
    private let authority: Substring
    /// Without the first slash.
    private let path: Substring?
    private var query: Substring?

    init(_ text: String) throws(RedisAddressProblem) {
        guard let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://"),
            let scheme = Self.schemes[String(text[..<colon]).loweredASCII]
        else { throw RedisAddressProblem(.unknownScheme) }
        guard !text.utf8.contains(UInt8(ascii: "#")) else { throw RedisAddressProblem(.fragment) }
        self.scheme = scheme
        let rest = text[text.index(colon, offsetBy: 3)...]
        let (whole, query) = Self.cut(rest, at: "?")
        let (authority, path) = Self.cut(whole, at: "/")
        self.query = query
        self.path = path
        if let at = authority.lastIndex(of: "@") {
            self.userInfo = authority[..<at]
            self.authority = authority[authority.index(after: at)...]
        } else {
            self.userInfo = nil
            self.authority = authority
        }
    }

    private static func cut(_ text: Substring, at separator: Character) -> (Substring, Substring?) {
        guard let index = text.firstIndex(of: separator) else { return (text, nil) }
        return (text[..<index], text[text.index(after: index)...])
    }

    func credentials() throws(RedisAddressProblem) -> RedisCredentials? {
        guard let userInfo = self.userInfo else { return nil }
        let (user, password) = Self.cut(userInfo, at: ":")
        guard let password, !password.isEmpty else { throw RedisAddressProblem(.userWithoutPassword) }
        guard let user = PercentCoding.decodedText(user), let password = PercentCoding.decodedText(password) else {
            throw RedisAddressProblem(.malformedCredentials)
        }
        return RedisCredentials(user: user.isEmpty ? nil : user, password: password)
    }

    func hosts(defaultPort: Int, limit: Int) throws(RedisAddressProblem) -> [RedisEndpoint] {
        guard !self.authority.isEmpty else { throw RedisAddressProblem(.missingHost) }
        let texts = self.authority.split(separator: ",", omittingEmptySubsequences: false)
        guard texts.count <= limit else { throw RedisAddressProblem(.tooManyHosts(limit: limit)) }
        var endpoints: [RedisEndpoint] = []
        for (index, text) in texts.enumerated() {
            endpoints.append(try Self.endpoint(text, number: index + 1, defaultPort: defaultPort))
        }
        return endpoints
    }

    private static func endpoint(
        _ text: Substring, number: Int, defaultPort: Int
    ) throws(RedisAddressProblem) -> RedisEndpoint {
        var host = text
        var portText: Substring?
        if text.first == "[" {
            let (address, rest) = Self.cut(text.dropFirst(), at: "]")
            guard let rest, rest.isEmpty || rest.first == ":", Self.isIPv6(address) else {
                throw RedisAddressProblem(.malformedHost(number: number))
            }
            host = address
            portText = rest.isEmpty ? nil : rest.dropFirst()
        } else {
            (host, portText) = Self.cut(text, at: ":")
            guard Self.isName(host) else { throw RedisAddressProblem(.malformedHost(number: number)) }
        }
        guard let portText else { return RedisEndpoint(host: String(host), port: defaultPort) }
        guard portText.utf8.count <= 5, let port = String(portText).decimal, (1...65535).contains(port) else {
            throw RedisAddressProblem(.malformedPort(number: number))
        }
        return RedisEndpoint(host: String(host), port: Int(port))
    }

    private static func isName(_ host: Substring) -> Bool {
        (1...253).contains(host.utf8.count)
            && host.utf8.allSatisfy { $0.isLetter || $0.isDigit || "._-".utf8.contains($0) }
    }

    /// Characters only: the resolver reads the address, and refuses one that is none.
    private static func isIPv6(_ host: Substring) -> Bool {
        (2...45).contains(host.utf8.count) && host.utf8.contains(UInt8(ascii: ":"))
            && host.utf8.allSatisfy { $0.hexadecimalValue != nil || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") }
    }

    // MARK: Path and query

    private var pathParts: [Substring] {
        (self.path ?? "").split(separator: "/", omittingEmptySubsequences: false)
    }

    /// - Parameter index: of the part that is the database; there may be none behind it.
    func database(inPath index: Int) throws(RedisAddressProblem) -> Int {
        let parts = self.pathParts
        guard parts.count <= index + 1 else { throw RedisAddressProblem(.malformedPath) }
        guard parts.count > index, !parts[index].isEmpty else { return 0 }
        return try Self.database(parts[index])
    }

    private static func database(_ text: Substring) throws(RedisAddressProblem) -> Int {
        guard let number = String(text).decimal, number <= Int32.max else {
            throw RedisAddressProblem(.malformedDatabase)
        }
        return Int(number)
    }

    func primaryName() throws(RedisAddressProblem) -> String {
        guard let part = self.pathParts.first, !part.isEmpty else { throw RedisAddressProblem(.missingPrimaryName) }
        guard let name = PercentCoding.decodedText(part) else { throw RedisAddressProblem(.malformedPath) }
        return name
    }

    func socketPath() throws(RedisAddressProblem) -> String {
        guard self.authority.isEmpty, let path = self.path, !path.isEmpty else {
            throw RedisAddressProblem(.missingSocketPath)
        }
        guard let decoded = PercentCoding.decodedText(path), !decoded.utf8.contains(0) else {
            throw RedisAddressProblem(.malformedPath)
        }
        let limit = RedisAddress.maximumSocketPath
        guard decoded.utf8.count + 1 <= limit else { throw RedisAddressProblem(.socketPathTooLong(limit: limit)) }
        return "/" + decoded
    }

    mutating func databaseInQuery() throws(RedisAddressProblem) -> Int {
        guard let query = self.query.take() else { return 0 }
        guard query.hasPrefix("db=") else { throw RedisAddressProblem(.unknownParameter) }
        return try Self.database(query.dropFirst(3))
    }

    func expectNoQuery() throws(RedisAddressProblem) {
        guard self.query == nil else { throw RedisAddressProblem(.unknownParameter) }
    }
}
