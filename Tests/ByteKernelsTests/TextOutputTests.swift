import ByteKernels
import TestSupport
import Testing

@Suite("Text written into a given buffer")
struct TextOutputTests {
    private func text(_ room: Int, _ write: (inout OutputSpan<UInt8>) -> Void) -> String {
        String(decoding: [UInt8](capacity: room, initializingWith: write), as: UTF8.self)
    }

    @Test(arguments: [0, 1, 9, 10, 11, 99, 100, 101, 65_535, UInt64(UInt32.max), .max - 1, .max])
    func numbersAreDecimalDigits(_ number: UInt64) {
        let room = OutputSpan<UInt8>.decimalRoom
        #expect(self.text(room) { $0.append(decimal: number) } == "\(number)")
    }

    @Test func everyLengthOfANumberIsWritten() {
        var number: UInt64 = 1
        for _ in 0..<20 {
            for near in [number - 1, number, number + 1] {
                #expect(self.text(OutputSpan<UInt8>.decimalRoom) { $0.append(decimal: near) } == "\(near)")
            }
            number = number.multipliedReportingOverflow(by: 10).partialValue
        }
    }

    @Test(arguments: [(0, "00"), (7, "07"), (10, "10"), (59, "59"), (99, "99")] as [(UInt64, String)])
    func twoDigitsAreAlwaysTwo(_ number: UInt64, _ expected: String) {
        #expect(self.text(2) { $0.append(twoDigits: number) } == expected)
    }

    @Test func copiedBytesAreAppended() {
        let bytes = Array("bc".utf8)
        let text = self.text(8) {
            $0.append(UInt8(ascii: "a"))
            $0.append(copying: bytes.span)
            $0.append(copying: bytes.span.extracting(droppingFirst: 2))
            $0.append(literal: "def")
            $0.append(literal: "")
        }
        #expect(text == "abcdef")
    }
}
