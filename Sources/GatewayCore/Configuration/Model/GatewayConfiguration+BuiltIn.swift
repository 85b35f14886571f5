extension GatewayConfiguration {
    /// What `sluice serve` runs without a file: `ws://127.0.0.1:8080` with `/echo` and `/chat/{room}`.
    ///
    /// `/echo` accepts permessage-deflate when a client offers it and takes messages up to 16 MiB.
    package static let builtInText = """
        listeners:
          - name: web
            listen: ws://127.0.0.1:8080
        routes:
          - name: echo
            path: /echo
            target: echo
            compress: true
            max-message-size: 16MiB
            keep-fragmentation: true
          - name: chat
            path: /chat/{room}
            target: chat
        """
}

extension LocatedConfiguration {
    /// - Throws: never, as a test shows.
    package static func builtIn() throws(ConfigurationProblems) -> LocatedConfiguration {
        try ConfigurationReader.read(Array(GatewayConfiguration.builtInText.utf8), file: "built-in configuration")
    }
}
