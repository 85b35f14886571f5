/// Tokens and keys that PyJWT 2.15.1 made, for the algorithms without an example in the RFCs. All have the claims
/// `{"sub":"42","exp":1900000000}`.
enum ForeignTokens {
    static let secret = "a secret that is long enough for the hash of every one of the algorithms"

    /// Algorithm, key and token.
    static let all: [(algorithm: String, key: String, token: String)] = [
        (
            "HS384", Self.secret,
            "eyJhbGciOiJIUzM4NCIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI0MiIsImV4cCI6MTkwMDAwMDAwMH0.9lNFLgxU1RBkmtaj65A"
                + "EmDkYu82hRN9wkQPEvtaHlO9Tky2GB3bqm-Ye7D5btjsK"
        ),
        (
            "HS512", Self.secret,
            "eyJhbGciOiJIUzUxMiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI0MiIsImV4cCI6MTkwMDAwMDAwMH0.iy8yW0BJ6vIPz1ReL4c"
                + "-sNmV3xhXRKeWL9qxYagjOAAMsUO8n1Cj_YT9N-dKia4WedY0uJUrnx1K0knSiXqNXg"
        ),
        (
            "RS384", Self.rsa,
            "eyJhbGciOiJSUzM4NCIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI0MiIsImV4cCI6MTkwMDAwMDAwMH0.Doab8ipW-KOqXFTYV8M"
                + "OfUDD9a18KcZ9TmCXlCyuPCYw2tXgQmcrVZYgRdvRkFxvsQboIDYS81K1Cd7m6qyWjFGuvNOL3t7IqiG-c6FR2u1AMtQB8UV"
                + "Q9X5SAbqGO61yk4tSy5ISV3v3TEO2k64JaO_Td0eXzxIfwYZ4AJfoAQPMlFyGBQC3F3JLu5ImlaTrXZUUMvRgjc16Uyovd4Y"
                + "SzHcPAZhcImn5kStNYtwkjwcNAq8dfon-oLreP7rFydkn9EbZJpcy4o3bVbHzqmDANles4vdg72neGpe1F5d0THeqW0vWdEe"
                + "JDc1ylzcsRsPCgon_OLgRo6VvEI04of690w"
        ),
        (
            "RS512", Self.rsa,
            "eyJhbGciOiJSUzUxMiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI0MiIsImV4cCI6MTkwMDAwMDAwMH0.dHuw8EB2XRxyGwsxOyb"
                + "aSX4kAVHxSshClSqKU720OPzPoALok-8IPgmpby0SJ61359CCOLR6B9F_O_Hmkg6XrYty93CTNW3nBG2xBDTZMe70W3lqJTB"
                + "DvWpeQmD_Cb8xOflPxe9eV9JqDiafWq4tuskm_VUKOWPZUWGlR3HlXguKFwbJtsIGXKV1DZNUbBwpc2_qzAUHgSZxb8fOTH7"
                + "scJit6lZu-XwWTHoe_u-gij-ukf7GebpeijwpXSXFDDqRcXxPcMt_EzQHzwh4Gzk8Lj555n-oBuAnrfT-Pv4ShZPIFL2_qrE"
                + "mZ-YQmknXx4n4y_VTYaypZwd3xviWWaOESg"
        ),
        (
            "PS256", Self.rsa,
            "eyJhbGciOiJQUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI0MiIsImV4cCI6MTkwMDAwMDAwMH0.BGnyMeYkuLBKfwJgILU"
                + "JVbbnAqtPb-Njg30Pgo9Hm6pmk3M8Rhk5ow9KOY08epxNjoWNRBIpwOTuORlE6EXM1k4pEL_gPwZvbgPgZBTLV_gE38yS-ZL"
                + "Uxpcv6izuZhz257kw-W1JYU5PG7n_lKcA6Inb0CGlizvQPMdgXY_sD1BBdQGOKLPdYltO-G9rM6REdVKKDXJr6vvLclgMYxU"
                + "_jovRHsgWzmVGtK8xLE3a_l8QRMVqrU_DqtOsPGJRTjsng2kMnuj6qqKMSp8utPSVfXXqOXDSbo9Ttr03D1w9VA6qeFtiaQz"
                + "kUk5WmsWrwP1rVf30H_dhRNP-HEBEFZ-Clg"
        ),
        (
            "PS384", Self.rsa,
            "eyJhbGciOiJQUzM4NCIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI0MiIsImV4cCI6MTkwMDAwMDAwMH0.hEop56O0Q9WOIc6lt2t"
                + "kSSQgzeYcHWQnzQ0y04jnlUv5OLIxd5KQSPmml7zZKr1uh1-qNOzgj1NefQ-Xg7SpKmPvaq0m_BH-Vy4y4pLj4Owvee7W9V6"
                + "a1mDUcRiGViNp1Ja7PSC2Bk0MC59VIGWNIr0PXpwiFLjM0hA89cWiMZ1WXC86yBJSCSjBg42VHuMXnhaJrsXEFVkLFKYocAp"
                + "ugGn66_rq7_kjyqX4FukEhTdBs83823mV-o-Jplc9Dpoqmt1nLvyet0v_Y-Zk9e2Pn761iSZIwoe6yvcfcgJRB4k-IlFZuig"
                + "qvHUuP8izmYHKNlr9Mdctlr_aih4s6bihoA"
        ),
        (
            "PS512", Self.rsa,
            "eyJhbGciOiJQUzUxMiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI0MiIsImV4cCI6MTkwMDAwMDAwMH0.O5UR00qIxje9JILWXrk"
                + "cHmygNyqqyky3R-gbptkRkk3xj2maBZgU3XCC2fN6RZJpUpEKvUMtF7DIMmlNaPuLwVf3SQBq_SRhQhSqmc6NGWIuurhwsw6"
                + "vZPFQ5hzRyik0LVW_dgvg52RCdyc_9UMVC76mShIHr-3aC1Ynp1sTVC11isNGq4AOhPA1tcUQz2VBaNyflgy9Q1FpbSY9sE0"
                + "D8huV0h9f1EZ3zoP8S24YiagtI8bYX2VtcyzM4AQ7S4sKD4l7wBSabI5FUyxkKn039I7WTw2dm31PEcd5mwZbN3hE7peVHQT"
                + "h3OrMzP68gSIVAHhQ7spWZceeQdQlqMhZSQ"
        ),
        (
            "ES384", Self.p384,
            "eyJhbGciOiJFUzM4NCIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI0MiIsImV4cCI6MTkwMDAwMDAwMH0.8oiSMll2ktAHBvMRWOY"
                + "I9Gkf3goGFarWqkWQlrhtEPJ06h7xdyJQiEz8wlIDl5X7q7Rfwt2iOuW8hUIcCqIg6xWUzP7bBtvGfz5NNGPmBLKHgKHtHAE"
                + "jumCwy0gNn1AR"
        ),
        (
            "EdDSA", Self.ed25519,
            "eyJhbGciOiJFZERTQSIsImtpZCI6ImQiLCJ0eXAiOiJKV1QifQ.eyJzdWIiOiI0MiIsImV4cCI6MTkwMDAwMDAwMH0.yFgwj"
                + "AuFcFdoUi7NvgnZjMO6sG1Y8eofwT7DRndsVxRalR9e_qPw01UuXT_8ouq0KEaQUUlYctTPUkbW6oWfAA"
        ),
    ]

    static let rsa = """
        -----BEGIN PUBLIC KEY-----
        MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAtf2rcMNZpP1QC2oHQi7X
        ef9gvuSNFWcPynAlRFyxUXJG3rqtq+Yfe1Z2wrAbnBg6a1uyStsMfr3K4mkXFTLo
        VsCGIm6bfhxen7+9eQksHcRJbNjlD9vTsn5+NDOVmv/sUaNWtSD5DtQ0rhtURqz6
        fwnF65Df+pCB4I0D0Vx16KlZz+mv8goR1X6aiwl8wyTMYk7dAX+uHsmqI7Fk5Qm9
        eHN4R+OmwargIgVTnp/q78LL8xYTzx//vbkwiP9beWfmSLYFpTO2waf/nlaiAImm
        YCe5i9BdAeqxjsEiwR7LSoD6eDxLGPzhSx++IpIrscX1iIsRLLifpdjca0sQePmk
        AwIDAQAB
        -----END PUBLIC KEY-----
        """

    static let rsaPKCS1 = """
        -----BEGIN RSA PUBLIC KEY-----
        MIIBCgKCAQEAtf2rcMNZpP1QC2oHQi7Xef9gvuSNFWcPynAlRFyxUXJG3rqtq+Yf
        e1Z2wrAbnBg6a1uyStsMfr3K4mkXFTLoVsCGIm6bfhxen7+9eQksHcRJbNjlD9vT
        sn5+NDOVmv/sUaNWtSD5DtQ0rhtURqz6fwnF65Df+pCB4I0D0Vx16KlZz+mv8goR
        1X6aiwl8wyTMYk7dAX+uHsmqI7Fk5Qm9eHN4R+OmwargIgVTnp/q78LL8xYTzx//
        vbkwiP9beWfmSLYFpTO2waf/nlaiAImmYCe5i9BdAeqxjsEiwR7LSoD6eDxLGPzh
        Sx++IpIrscX1iIsRLLifpdjca0sQePmkAwIDAQAB
        -----END RSA PUBLIC KEY-----
        """

    static let p384 = """
        -----BEGIN PUBLIC KEY-----
        MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEhe9V3j/uUCOxsqXfKBeGf6HqqF6sw+OT
        rYcNr/dx3M38qwMyv7UZpTjBbQqcnkL/Z0qhj+kgkuuxoopgtf0w8k5SOta5q3rw
        LJBdMSv5jL1Z2PIX4xkvRgeuK4suVrqH
        -----END PUBLIC KEY-----
        """

    static let ed25519 = """
        -----BEGIN PUBLIC KEY-----
        MCowBQYDK2VwAyEAaqWr/HdqNDydotMdn2I276N++P0sZGW6lEkRXxUvwS4=
        -----END PUBLIC KEY-----
        """

    static let rsaOf1024Bits = """
        -----BEGIN PUBLIC KEY-----
        MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCrLd3+DParYvSxTgl2gWc0/fjv
        rsrzPajXvZb2r25l0qS+WCDp2ZaXmklmmsiJXnVw1JrYhOR5B//uJBo51q06SLrv
        IY4bqpuH8YdvXXUMfHy7mBcdv1JiPDxNcCLWzJmiijXvlS7XVSLuqZ/DSvsX0l6x
        dbeDM3FjC2saFjKSCwIDAQAB
        -----END PUBLIC KEY-----
        """

    static let privateKey = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgJkK5TDy6HNlbxTaq
        e3PSmtfg268U2skdHmUGTCEfLFGhRANCAATRqhL3CUdJsm0sDhj2p4pn5bhBFeSE
        1z0Neb5BzNXHFo66zAGi+4YIi45c+YaiDKA2r+HYMES+iFbRfJPS8JzJ
        -----END PRIVATE KEY-----
        """

}
