import RedisEngine
import WireText

/// A script that Redis executes as one step.
package struct RedisScript: Sendable, Equatable {
    package let source: String
    /// SHA-1 of the source as hexadecimal digits.
    package let digest: String

    package init(_ source: String) {
        self.source = source
        self.digest = Hexadecimal.text(MessageDigest.of(Array(source.utf8), by: .sha1))
    }

    /// `EVALSHA`, which fails with `NOSCRIPT` where the server does not have the script.
    func call(keys: [[UInt8]], arguments: [RedisArgument]) -> RedisCommand {
        self.command("EVALSHA", .text(self.digest), keys, arguments)
    }

    /// `EVAL`, after which the server has the script.
    func callWithSource(keys: [[UInt8]], arguments: [RedisArgument]) -> RedisCommand {
        self.command("EVAL", .text(self.source), keys, arguments)
    }

    var load: RedisCommand { RedisCommand("SCRIPT", "LOAD", .text(self.source)) }

    private func command(
        _ name: String, _ script: RedisArgument, _ keys: [[UInt8]], _ arguments: [RedisArgument]
    ) -> RedisCommand {
        RedisCommand(name, [script, .number(keys.count)] + keys.map(RedisArgument.bytes) + arguments)
    }
}
