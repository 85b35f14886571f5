import Foundation
import Testing
import URLLoading

/// A server over HTTP/2 that allows no streams at first refuses the request that was sent before it said so (RFC 9113
/// §5.1.2).
@Suite("Tasks whose server allows no HTTP/2 streams")
struct StreamLimitLoadingTests {
    /// RST_STREAM with REFUSED_STREAM, of the first stream.
    private static let refusal: [UInt8] = [0, 0, 4, 3, 0, 0, 0, 0, 1] + [0, 0, 0, 7]

    /// SETTINGS_MAX_CONCURRENT_STREAMS.
    private static func settings(_ limit: UInt8) -> [UInt8] { [0, 0, 6, 4, 0, 0, 0, 0, 0] + [0, 3, 0, 0, 0, limit] }

    /// Eight tasks, whose server allows no streams now.
    private func makeScene() throws -> NetworkScene {
        let scene = try NetworkScene {
            $0.assumesHTTP2 = true
            $0.waitsForConnectivity = false
        }
        for _ in 0..<8 { scene.load() }
        #expect(scene.awaitRequest())
        scene.answerAll(Self.settings(0) + Self.refusal)
        return scene
    }

    @Test func tasksTimeOutIfItNeverAllowsAny() throws {
        let scene = try self.makeScene()
        #expect(!scene.awaitEnds(1, atMost: .seconds(59)))
        #expect(scene.awaitEnds(8, atMost: .seconds(2)))
        #expect(scene.log.errors.map { $0?.code } == Array(repeating: .timedOut, count: 8))
        #expect(scene.received.count == 1)
        scene.end()
    }

    @Test func tasksAreLoadedOnceItAllowsSome() throws {
        let scene = try self.makeScene()
        #expect(!scene.awaitEnds(1, atMost: .seconds(50)))
        scene.answerAll(Self.settings(100))
        scene.run(atMost: .seconds(1))
        // Heads with status 200 that end the streams 3 to 17.
        for stream in stride(from: UInt8(3), through: 17, by: 2) {
            scene.answerAll([0, 0, 1, 1, 5, 0, 0, 0, stream, 0x88])
        }
        #expect(scene.awaitEnds(8))
        #expect(scene.log.errors == Array(repeating: nil, count: 8) && scene.received.count == 1)
        scene.end()
    }
}
