import Foundation
import Testing

/// Content encoded by another program: Python's zlib and gzip modules.
struct CodedContent: CustomTestStringConvertible {
    let testDescription: String
    let contentEncoding: String
    let bytes: [UInt8]

    private init(_ name: String, _ contentEncoding: String, _ base64: String) {
        self.testDescription = name
        self.contentEncoding = contentEncoding
        self.bytes = [UInt8](Data(base64Encoded: base64) ?? Data())
    }

    static let text = "the quick brown fox jumps over the lazy dog, the quick brown fox jumps over the lazy dog"

    /// All of them are of `text`.
    static let all = [
        CodedContent(
            "gzip", "gzip",
            "H4sIAAAAAAACAyvJSFUoLM1MzlZIKsovz1NIy69QyCrNLShWyC9LLVIoAUrnJFZVKqTkp+uAeUQqBgDT"
                + "4cqyWAAAAA=="),
        CodedContent(
            "gzip with a name", "x-gzip",
            "H4sICAUAAAAC/25hbWVkLnR4dAAryUhVKCzNTM5WSCrKL89TSMuvUMgqzS0oVsgvSy1SKAFK5yRWVSqk"
                + "5KfrgHlEKgYA0+HKslgAAAA="),
        CodedContent(
            "gzip of two members", "gzip",
            "H4sIAAAAAAACAyvJSFUoLM1MzlZIKsovz1NIy69QyCrNLShWyC9LLQIA2mLG5B4AAAAfiwgAAAAAAAID"
                + "UyjJSFXISayqVEjJT9dRAPEKSzOTsxWSivLL8xTS8isUskpzC4oV8stSixSQFQMA0gCIxToAAAA="),
        CodedContent(
            "padded gzip", "gzip",
            "H4sIAAAAAAACAyvJSFUoLM1MzlZIKsovz1NIy69QyCrNLShWyC9LLVIoAUrnJFZVKqTkp+uAeUQqBgDT"
                + "4cqyWAAAAAAAAAAAAAAAAA=="),
        CodedContent(
            "deflate", "deflate",
            "eNoryUhVKCzNTM5WSCrKL89TSMuvUMgqzS0oVsgvSy1SKAFK5yRWVSqk5KfrgHlEKgYAnqggPw=="),
        CodedContent(
            "deflate, fastest", "Deflate",
            "eAEryUhVKCzNTM5WSCrKL89TSMuvUMgqzS0oVsgvSy1SKAFK5yRWVSqk5KfrgHlEKgYAnqggPw=="),
        CodedContent(
            "deflate without its wrapping", "deflate",
            "K8lIVSgszUzOVkgqyi/PU0jLr1DIKs0tKFbIL0stUigBSuckVlUqpOSn64B5RCoGAA=="),
        CodedContent(
            "deflate in gzip", "deflate, gzip",
            "H4sIAAAAAAACAwE3AMj/eJwryUhVKCzNTM5WSCrKL89TSMuvUMgqzS0oVsgvSy1SKAFK5yRWVSqk5Kfr"
                + "gHlEKgYAnqggPxHjoQ03AAAA"),
        CodedContent(
            "gzip in raw deflate", "gzip , identity, deflate",
            "k+/mYAABJmbtkx6hGjpnfc6FeWid0j8f7HF6fcAJrbO6GmEn9L11gzQYvZ6rhIVqLXmy/HVDpYsWG8Pl"
                + "h6c2RQC1AgA="),
        CodedContent(
            "four times", "gzip, gzip, gzip, gzip",
            "H4sIAAAAAAACAwFqAJX/H4sIAAAAAAACA5Pv5mAAASbmye+fJTAwqqW9nSy3UMoqvfZca2XG3Ev28m8K"
                + "q2oPcK7dvEsqUf3L3tJmE4m981a3tGbpVm76U+q8tFtM+vDT9uVmrgxbmRgKvsRoOQNNAwCHlD4sVgAA"
                + "AH4KL0dqAAAA"),
        CodedContent(
            "Brotli", "br",
            "H1cAAIyUbuZihEqHOlmqt/41QtEIyDe0MNiAA4cE8hca5Hq2zC6xs2OyRQnLw0bZ6g+T8gkA"),
        CodedContent(
            "Zstandard", "zstd",
            "KLUv/QRorQEA1AJ0aGUgcXVpY2sgYnJvd24gZm94IGp1bXBzIG92ZXIgdGhlIGxhenkgZG9nLCABAAWa"
                + "qgzHqjZD"),
        CodedContent(
            "gzip in Brotli", "gzip, br",
            "DyGAH4sIAAAAAAAAAyvJSFUoLM1MzlZIKsovz1NIy69QyCrNLShWyC9LLVIoAUrnJFZVKqTkp+uAeUQq"
                + "BgDT4cqyWAAAAAM="),
    ]

    /// `text` in two frames, the second without a checksum.
    static let zstandardFrames = CodedContent(
        "Zstandard of two frames", "zstd",
        "KLUv/QRoaQEAdGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZywgupie4yi1L/0AWFkB"
            + "AHRoZSBxdWljayBicm93biBmb3gganVtcHMgb3ZlciB0aGUgbGF6eSBkb2c=")

    /// Begins a frame whose window is 128 MiB.
    static let wideZstandard = CodedContent(
        "Zstandard with a wide window", "zstd", "KLUv/QSITAAACAABAPz/ORACAgAQAAIA")

    /// 64 MiB of zeros.
    static let brotliBomb = CodedContent(
        "Brotli bomb", "br",
        "z///fwAkAOKxQHLv//n//w+ABEAcFoDu/T////8BkACIwwLQvf/n//8/ABIAcVgAuvf/Aw==")

    /// 64 MiB of zeros, compressed twice.
    static let bomb = CodedContent(
        "bomb", "gzip, gzip",
        """
        H4sIAAAAAAACA+3cr05CcRTA8YtcNyYbYiAZ5BGIFAYazAbNjgcgkmVzJgsvQWZjc7PSeAO02f0TnDM5L9z7GL/z+aSTTzw7+549\
        NrLSQf1jXavth9n8f/nVOMoAAACAxM1e7+vlMSDrFtvLqxsAAAAgdePjVl4dBf5uT8+tAwAAAJL3MOi3qw+B77tJbh0AAACQvM7v\
        26i6BWyKp5Nr+wAAAIDkvQgGAAAAQCiCAQAAABCLYAAAAADEIhgAAAAAwQgGAAAAQCyCAQAAABCLYAAAAADEIhgAAAAAwQgGAAAA\
        QCyCAQAAABDLYtDvlo8B7Z9iOrw4zAAAAIjkufnZe1/th3wHPEzs+uL+AAA=
        """)
}
