/// The protected application data of RFC 8448 §3, in TLS_AES_128_GCM_SHA256.
struct RecordVector {
    let secret: [UInt8]
    let key: [UInt8]
    let iv: [UInt8]
    /// A record of `payload`, and the following close_notify.
    let data: [UInt8]
    let closeNotify: [UInt8]
    /// Records under the same key before these.
    let sequence: UInt64

    /// 0 to 49, from both sides.
    static let payload = [UInt8](0..<50)

    static let fromClient = RecordVector(
        secret: bytes("9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5"),
        key: bytes("17422dda596ed5d9acd890e3c63f5051"), iv: bytes("5b78923dee08579033e523d9"),
        data: bytes(
            "1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a20441e2b62974e"
                + "1f5a6292a2977014bd1e3deae63aeebb21694915e4"),
        closeNotify: bytes("1703030013c9872760655666b74d7ff1153efd6db6d0b0e3"), sequence: 0)

    /// The first record is a ticket.
    static let fromServer = RecordVector(
        secret: bytes("a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643"),
        key: bytes("9f02283b6c9c07efc26bb9f2ac92e356"), iv: bytes("cf782b88dd83549aadf1e984"),
        data: bytes(
            "17030300432e937e11ef4ac740e538ad36005fc4a46932fc3225d05f82aa1b36e30efaf97d90e6dffc602dcb501a59a8fcc49c"
                + "4bf2e5f0a21c0047c2abf332540dd032e167c2955d"),
        closeNotify: bytes("1703030013b58fd67166ebf599d24720cfbe7efa7a8864a9"), sequence: 1)

    static func bytes(_ hexadecimal: String) -> [UInt8] {
        let digits = hexadecimal.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }
}
