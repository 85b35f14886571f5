import SessionTasks
import Testing
import WebSocketProtocol

@Suite("Masking keys, RFC 6455 §5.3")
struct MaskingKeysTests {
    @Test func eachRandomWordGivesTwoKeys() {
        let (first, more) = MaskingKeys.keys(of: [0x0000_0002_0000_0001, 0x0000_0004_0000_0003])
        #expect([first] + more.reversed() == [4, 3, 2, 1])
    }

    /// Ten equal keys by chance: once in 2^288.
    @Test func maskingKeysAreUnpredictableWithoutSystemRandomness() {
        let keys = (0..<10).map { _ in MaskingKeys.keys(of: []).first }
        #expect(Set(keys).count > 1)
    }
}
