import TLSEngine
import Testing

@Suite("Keys from the traffic secrets, RFC 8446 §7")
struct KeyScheduleTests {
    @Test func keysOfTheExampleHandshakeAreDerived() {
        for direction in [RecordVector.fromClient, RecordVector.fromServer] {
            #expect(KeySchedule.expand(direction.secret, .aes128GCM, label: "key", count: 16) == direction.key)
            #expect(KeySchedule.expand(direction.secret, .aes128GCM, label: "iv", count: 12) == direction.iv)
        }
    }

    /// QUIC uses the same function with its own labels.
    @Test func keysOfTheQUICExampleAreDerived() {
        let secret = RecordVector.bytes("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b")
        let key = "c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8"
        let next = "1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9"
        let suite = RecordSuite.chaCha20Poly1305
        #expect(KeySchedule.expand(secret, suite, label: "quic key", count: 32) == RecordVector.bytes(key))
        let iv = RecordVector.bytes("e0459b3474bdd0e44a41c144")
        #expect(KeySchedule.expand(secret, suite, label: "quic iv", count: 12) == iv)
        #expect(KeySchedule.expand(secret, suite, label: "quic ku", count: 32) == RecordVector.bytes(next))
    }

    @Test func secretOfAnotherLengthIsRejected() {
        let short = [UInt8](repeating: 1, count: 32)
        #expect(KeySchedule.expand(short, .aes256GCM, label: "key", count: 32) == nil)
        let isMade = RecordKey.make(.aes256GCM, secret: SecretBytes(short), use: .sealing) != nil
        #expect(!isMade)
    }
}
