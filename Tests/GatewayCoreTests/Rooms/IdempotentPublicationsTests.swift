import GatewayCore
import Rooms
import Testing

@Suite("Publications with an idempotency key")
struct IdempotentPublicationsTests {
    private static func position(_ offset: Int) -> StreamPosition { StreamPosition(offset: UInt64(offset), epoch: "e") }

    @Test func keysAreRememberedForFiveMinutes() {
        var publications = IdempotentPublications()
        for number in 0..<5000 {
            publications.add("\(number)", at: Self.position(number), now: .milliseconds(number))
        }
        let end = Duration.seconds(300)
        #expect(publications.position(of: "0", now: end - .milliseconds(1)) == Self.position(0))
        #expect(publications.position(of: "0", now: end) == nil)
        #expect(publications.position(of: "1", now: end) == Self.position(1))
        #expect(!publications.areExpired(now: end + .milliseconds(4998)))
        #expect(publications.areExpired(now: end + .milliseconds(4999)))
    }

    @Test func oldestKeysAreForgottenAboveTheLimit() {
        var publications = IdempotentPublications()
        for number in 0...IdempotentPublications.limit {
            publications.add("\(number)", at: Self.position(number), now: .zero)
        }
        #expect(publications.position(of: "0", now: .zero) == nil)
        #expect(publications.position(of: "1", now: .zero) == Self.position(1))
    }

    @Test func keysAreBytes() {
        var publications = IdempotentPublications()
        publications.add("\u{E9}", at: Self.position(1), now: .zero)
        #expect(publications.position(of: "e\u{301}", now: .zero) == nil)
    }
}
