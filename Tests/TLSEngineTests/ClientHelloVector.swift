import TLSEngine
import Testing

/// ClientHello messages of other implementations, each in one record.
struct ClientHelloVector: Sendable, CustomTestStringConvertible {
    let source: String
    let record: [UInt8]
    let hello: ClientHello

    var testDescription: String { self.source }

    private init(_ source: String, _ serverName: String?, _ protocols: [String], _ record: String) {
        self.source = source
        self.hello = ClientHello(serverName: serverName, applicationProtocols: protocols)
        let digits = record.compactMap(\.hexDigitValue)
        self.record = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    static let all = [
        ClientHelloVector(
            "RFC 8448 §3", "server", [],
            "16030100c4010000c00303cb34ecb1e78163ba1c38c6dacb196a6dffa21a8d9912ec18a2ef6283024dece70000061301"
                + "13031302010000910000000b0009000006736572766572ff01000100000a00140012001d001700180019010001010102"
                + "0103010400230000003300260024001d002099381de560e4bd43d23d8e435a7dbafeb3c06e51c13cae4d5413691e529a"
                + "af2c002b0003020304000d0020001e040305030603020308040805080604010501060102010402050206020202002d00"
                + "020101001c00024001"),
        ClientHelloVector(
            "openssl s_client -servername gateway.example -alpn h2,http/1.1", "gateway.example", ["h2", "http/1.1"],
            "160301014e0100014a03036093b8ad3ddd9148773eb466627bf2b2662a978923b2e7142dce0cf0749b4e2020f2f34b68"
                + "e8f5eb4670a06e9ceded891a493f5288373021baddac7ead0452485b003e130213031301c02cc030009fcca9cca8ccaa"
                + "c02bc02f009ec024c028006bc023c0270067c00ac0140039c009c0130033009d009c003d003c0035002f00ff010000c3"
                + "00000014001200000f676174657761792e6578616d706c65000b000403000102000a00160014001d0017001e00190018"
                + "01000101010201030104002300000010000e000c02683208687474702f312e310016000000170000000d002a00280403"
                + "05030603080708080809080a080b080408050806040105010601030303010302040205020602002b0009080304030303"
                + "020301002d00020101003300260024001d00209eb07e7194a34abf25927dde31788b47a4a7560fbf2b7992b77897151b"
                + "e88d26"),
        ClientHelloVector(
            "openssl s_client -tls1_2 -servername a.example -alpn mqtt", "a.example", ["mqtt"],
            "16030100d4010000d003030dda7eae5e754390ea3f25ea49f3bb770ea34294aa54a6236cf1b835dafe6467000038c02c"
                + "c030009fcca9cca8ccaac02bc02f009ec024c028006bc023c0270067c00ac0140039c009c0130033009d009c003d003c"
                + "0035002f00ff0100006f0000000e000c000009612e6578616d706c65000b000403000102000a000c000a001d0017001e"
                + "0019001800230000001000070005046d7174740016000000170000000d002a0028040305030603080708080809080a08"
                + "0b080408050806040105010601030303010302040205020602"),
        ClientHelloVector(
            "openssl s_client -tls1_2 -noservername", nil, [],
            "16030100b7010000b30303bafa95c1a18f4965da1548fa9cddec581ca4c78e195259da874059038ffd315c000038c02c"
                + "c030009fcca9cca8ccaac02bc02f009ec024c028006bc023c0270067c00ac0140039c009c0130033009d009c003d003c"
                + "0035002f00ff01000052000b000403000102000a000c000a001d0017001e00190018002300000016000000170000000d"
                + "002a0028040305030603080708080809080a080b080408050806040105010601030303010302040205020602"),
        ClientHelloVector(
            "by hand: no extensions at all, RFC 5246 §7.4.1.2", nil, [],
            "160301002d0100002903031111111111111111111111111111111111111111111111111111111111111111000002c02f"
                + "0100"),
    ]
}
