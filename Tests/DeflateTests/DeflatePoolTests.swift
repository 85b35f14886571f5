import Deflate
import Testing

@Suite("Pool of compression contexts")
struct DeflatePoolTests {
    @Test func poolReturnsAMatchingStreamAfterReset() throws {
        let pool = DeflatePool(capacity: 4)
        let settings = DeflaterSettings(format: .raw, windowBits: 10)
        let deflater = try #require(pool.takeDeflater(settings))
        var first: [UInt8] = []
        deflater.deflate(Array("Hello".utf8).span.bytes, flush: .sync, appendingTo: &first)
        pool.recycle(deflater)
        let other = try #require(pool.takeDeflater(DeflaterSettings(format: .raw, windowBits: 11)))
        #expect(other !== deflater)
        let again = try #require(pool.takeDeflater(settings))
        #expect(again === deflater)
        var second: [UInt8] = []
        again.deflate(Array("Hello".utf8).span.bytes, flush: .sync, appendingTo: &second)
        #expect(second == first)
    }

    @Test func resetsAnInflaterThatFailed() throws {
        let pool = DeflatePool(capacity: 1)
        let inflater = try #require(pool.takeInflater(format: .raw))
        #expect(inflater.feed([[0x07]], room: 10).failure != nil)
        pool.recycle(inflater)
        let again = try #require(pool.takeInflater(format: .raw))
        #expect(again === inflater)
        #expect(again.feed([[0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]], room: 10).bytes == Array("Hello".utf8))
    }

    @Test func poolKeepsNoMoreThanItsCapacity() throws {
        let pool = DeflatePool(capacity: 2)
        for windowBits in 9...12 {
            pool.recycle(try #require(Inflater(format: .raw, windowBits: windowBits)))
            pool.recycle(try #require(Deflater(DeflaterSettings(format: .raw, windowBits: windowBits))))
        }
        #expect(pool.idleInflaters == 2)
        #expect(pool.idleDeflaters == 2)
        let keepsNothing = DeflatePool(capacity: 0)
        keepsNothing.recycle(try #require(Inflater(format: .raw)))
        #expect(keepsNothing.idleInflaters == 0)
    }
}
