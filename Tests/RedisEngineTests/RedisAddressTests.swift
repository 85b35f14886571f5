import RedisEngine
import Testing

@Suite("URL of Redis")
struct RedisAddressTests {
    struct Vector: Sendable {
        let url: String
        let location: RedisAddress.Location
        var usesTLS = false
        var user: String?
        var password: String?
        var database = 0
        var description: String
    }

    private static func server(_ host: String, _ port: Int = 6379) -> RedisAddress.Location {
        .server(RedisEndpoint(host: host, port: port))
    }

    private static let nodes = [RedisEndpoint(host: "a", port: 1), RedisEndpoint(host: "b", port: 6379)]
    private static let sentinels = [RedisEndpoint(host: "a", port: 1), RedisEndpoint(host: "b", port: 26379)]

    private static let vectors: [Vector] = [
        Vector(url: "redis://localhost", location: server("localhost"), description: "redis://localhost:6379/0"),
        Vector(url: "REDIS://h/", location: server("h"), description: "redis://h:6379/0"),
        Vector(
            url: "rediss://anna:s3cret@redis.example:6380/5", location: server("redis.example", 6380), usesTLS: true,
            user: "anna", password: "s3cret", database: 5, description: "rediss://anna:***@redis.example:6380/5"),
        Vector(
            url: "redis://:p%40%2F%3A%23s3cret@[::1]:7", location: server("::1", 7), password: "p@/:#s3cret",
            description: "redis://:***@[::1]:7/0"),
        Vector(
            url: "redis://a%20b:x:y@h", location: server("h"), user: "a b", password: "x:y",
            description: "redis://a%20b:***@h:6379/0"),
        Vector(
            url: "redis://u:s3@cret@h", location: server("h"), user: "u", password: "s3@cret",
            description: "redis://u:***@h:6379/0"),
        Vector(
            url: "redis://[fe80::1.2.3.4]", location: server("fe80::1.2.3.4"),
            description: "redis://[fe80::1.2.3.4]:6379/0"),
        Vector(
            url: "unix:///run/redis/redis.sock?db=2", location: .unixSocket(path: "/run/redis/redis.sock"), database: 2,
            description: "unix:///run/redis/redis.sock?db=2"),
        Vector(
            url: "unix://:s3cret@/tmp/a%20b", location: .unixSocket(path: "/tmp/a b"), password: "s3cret",
            description: "unix://:***@/tmp/a b?db=0"),
        Vector(
            url: "redis+sentinel://a:1,b/rooms/3", location: .sentinels(sentinels, name: "rooms"), database: 3,
            description: "redis+sentinel://a:1,b:26379/rooms/3"),
        Vector(
            url: "rediss+sentinel://u:s3cret@a:1,b/my%2Frooms", location: .sentinels(sentinels, name: "my/rooms"),
            usesTLS: true, user: "u", password: "s3cret",
            description: "rediss+sentinel://u:***@a:1,b:26379/my%2Frooms/0"),
        Vector(
            url: "redis+cluster://a:1,b", location: .cluster(nodes), description: "redis+cluster://a:1,b:6379"),
        Vector(
            url: "rediss+cluster://u:s3cret@a:1,b/0", location: .cluster(nodes), usesTLS: true, user: "u",
            password: "s3cret", description: "rediss+cluster://u:***@a:1,b:6379"),
    ]

    @Test(arguments: vectors)
    func partsOfTheURLAreRead(_ vector: Vector) throws {
        let address = try RedisAddress(vector.url)
        #expect(address.location == vector.location)
        #expect(address.usesTLS == vector.usesTLS)
        #expect(address.credentials?.user == vector.user)
        #expect(address.credentials?.password == vector.password)
        #expect(address.database == vector.database)
        #expect("\(address)" == vector.description)
        #expect(!String(reflecting: address).contains("s3cret"))
    }

    @Test(arguments: [
        ("", RedisAddressProblem.Kind.unknownScheme), ("localhost:6379", .unknownScheme),
        ("http://h", .unknownScheme), ("redis:/h", .unknownScheme), ("://h", .unknownScheme),
        ("redis://", .missingHost), ("redis:///1", .missingHost),
        ("redis://u:s3cret@", .missingHost), ("redis://s3cret@h", .userWithoutPassword),
        ("redis://u:@h", .userWithoutPassword), ("redis://@h", .userWithoutPassword),
        ("redis://u:s3cret%4@h", .malformedCredentials), ("redis://%ff:s3cret@h", .malformedCredentials),
        ("redis://h h", .malformedHost(number: 1)), ("redis://[::1", .malformedHost(number: 1)),
        ("redis://[::1]x", .malformedHost(number: 1)), ("redis://[h]", .malformedHost(number: 1)),
        ("redis://::1", .malformedHost(number: 1)), ("redis://:s3cret/x@h", .malformedHost(number: 1)),
        ("redis://u:s3cret/x@h", .malformedPort(number: 1)), ("redis://h:", .malformedPort(number: 1)),
        ("redis://h:0", .malformedPort(number: 1)), ("redis://h:65536", .malformedPort(number: 1)),
        ("redis://h:+1", .malformedPort(number: 1)), ("redis://h:000001", .malformedPort(number: 1)),
        ("redis+cluster://a,,b", .malformedHost(number: 2)), ("redis+cluster://a,b:x", .malformedPort(number: 2)),
        ("redis+sentinel://a,b:1,c:2:3/n", .malformedPort(number: 3)), ("redis://a,b", .tooManyHosts(limit: 1)),
        ("redis+cluster://" + String(repeating: "a,", count: 64) + "a", .tooManyHosts(limit: 64)),
        ("redis://h/x", .malformedDatabase), ("redis://h/-1", .malformedDatabase),
        ("redis://h/2147483648", .malformedDatabase), ("redis://h/1/", .malformedPath),
        ("redis+sentinel://h", .missingPrimaryName), ("redis+sentinel://h//1", .missingPrimaryName),
        ("redis+sentinel://h/%", .malformedPath), ("redis+sentinel://h/n/1/2", .malformedPath),
        ("redis+cluster://h/1", .databaseOfCluster), ("redis://h?db=1", .unknownParameter),
        ("unix:///s?x=1", .unknownParameter), ("unix:///s?db=x", .malformedDatabase),
        ("unix://h/s", .missingSocketPath),
        ("unix://", .missingSocketPath), ("unix:///", .missingSocketPath), ("unix:///a%00", .malformedPath),
        ("unix:///" + String(repeating: "a", count: 107), .socketPathTooLong(limit: 107)),
        ("redis://u:s3cret#x@h", .fragment),
    ])
    func problemNamesThePlaceAndTheRemedyWithoutTheText(_ url: String, _ kind: RedisAddressProblem.Kind) {
        #expect {
            try RedisAddress(url)
        } throws: { error in
            let problem = error as? RedisAddressProblem
            return problem?.kind == kind && problem?.description.contains("s3cret") == false
        }
    }

    @Test func longestSocketPathIsAccepted() throws {
        let path = "/" + String(repeating: "a", count: 106)
        #expect(try RedisAddress("unix://" + path).location == .unixSocket(path: path))
    }
}
