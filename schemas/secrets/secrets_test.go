package secrets

import (
	"strings"
	"testing"
)

// TestRedact shows what is taken out of texts, and what stays. A "§" in a secret is left out of it, so that this file
// itself is none that a scanner stumbles over.
func TestRedact(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"password = hunter2", "password = [redacted:password]"},
		{`{"db_password": "x"}`, `{"db_password": "[redacted:password]"}`},
		{"PASSWORD: foo", "PASSWORD: [redacted:password]"},
		{"DB_PASS=foo", "DB_PASS=[redacted:password]"},
		{"export PGPASSWORD='a b c'", "export PGPASSWORD='[redacted:password]'"},
		{`dbPassword := "hunter2"`, `dbPassword := "[redacted:password]"`},
		{`password: str = "hunter2"`, `password: str = "[redacted:password]"`},
		{`{\"password\":\"hunter2\"}`, `{\"password\":\"[redacted:password]\"}`},
		{"--password hunter2 --user bob", "--password [redacted:password] --user bob"},
		{"--password=hunter2", "--password=[redacted:password]"},
		{"Server=db;User=sa;Password=hunter2;Database=x", "Server=db;User=sa;Password=[redacted:password];Database=x"},
		{"Server=db;Pwd=hunter2;", "Server=db;Pwd=[redacted:password];"},
		{"user=bob&password=hunter2&x=1", "user=bob&password=[redacted:password]&x=1"},
		{"<password>hunter2</password>", "<password>[redacted:password]</password>"},
		{`<add key="DbPassword" value="hunter2" />`, `<add key="DbPassword" value="[redacted:password]" />`},
		{"- name: DB_PASSWORD\n  value: hunter2\n", "- name: DB_PASSWORD\n  value: [redacted:password]\n"},
		{`os.Setenv("DB_PASSWORD", "hunter2")`, `os.Setenv("DB_PASSWORD", "[redacted:password]")`},
		{`client.setPassword("hunter2")`, `client.setPassword("[redacted:password]")`},
		{"ALTER USER x WITH PASSWORD 'hunter2';", "ALTER USER x WITH PASSWORD '[redacted:password]';"},
		{"The password is `hunter2`, for now", "The password is `[redacted:password]`, for now"},
		{"password for the staging database: hunter2", "password for the staging database: [redacted:password]"},
		{"machine db login ada password hunter2", "machine db login ada password [redacted:password]"},
		{"machine db\n  login ada\n  password hunter2\n", "machine db\n  login ada\n  password [redacted:password]\n"},
		{"CREATE USER app IDENTIFIED BY 'Mond88Stern'", "CREATE USER app IDENTIFIED BY '[redacted:password]'"},
		{"create user app@'%'\n  identified with sha256_password by \"hunter2\";",
			"create user app@'%'\n  identified with sha256_password by \"[redacted:password]\";"},
		{"ALTER USER scott IDENTIFIED BY tiger;", "ALTER USER scott IDENTIFIED BY [redacted:password];"},
		{"das Passwort ist Blau7Wald", "das Passwort ist [redacted:password]"},
		{"Das Passwort der Datenbank lautet \"blau\".", "Das Passwort der Datenbank lautet \"[redacted:password]\"."},
		{"Kennwort: blau", "Kennwort: [redacted:password]"},
		{"le mot de passe est Bleu7Foret, merci", "le mot de passe est [redacted:password], merci"},
		{"la contraseña es Azul7Bosque.", "la contraseña es [redacted:password]."},
		{"A SENHA É Azul7", "A SENHA É [redacted:password]"},
		{"het wachtwoord is Blauw7Bos", "het wachtwoord is [redacted:password]"},
		{"Пароль: гора7", "Пароль: [redacted:password]"},
		{"数据库的密码是 Abc12345x", "数据库的密码是 [redacted:password]"},
		{"パスワードは Abc12345x", "パスワードは [redacted:password]"},
		{"mysql -u root -phunter2 db", "mysql -u root -p[redacted:command-password] db"},
		{"sshpass -p hunter2 ssh db", "sshpass -p [redacted:command-password] ssh db"},
		{"AccountKey=Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA==;", "AccountKey=[redacted:secret-assignment];"},
		{`"auth": "dXNlcjpwYXNzd29yZA=="`, `"auth": "[redacted:secret-assignment]"`},
		{"The password is hunter2.", "The password is [redacted:password]"},
		{"password:\n  'hunter2'", "password:\n  '[redacted:password]'"},
		{"password: |\n  hunter2\n", "password: |\n  [redacted:password]\n"},
		{"postgres://app:hunter2@db:5432/x", "postgres://app:[redacted:url-password]@db:5432/x"},
		{"redis://:hunter2@cache", "redis://:[redacted:url-password]@cache"},
		{"mongodb+srv://a:p%40ss/w@c.net/?x=1", "mongodb+srv://a:[redacted:url-password]@c.net/?x=1"},
		{"amqp://guest:guest@mq:5672", "amqp://guest:[redacted:url-password]@mq:5672"},
		{"app:hunter2@tcp(db:3306)/x", "app:[redacted:connection-string]@tcp(db:3306)/x"},
		{"jdbc:oracle:thin:scott/tiger@db:1521", "jdbc:oracle:thin:scott/[redacted:connection-string]@db:1521"},
		{"jdbc:mysql://db/x?user=a&password=b1", "jdbc:mysql://db/x?user=a&password=[redacted:password]"},
		{"key AK§IAIOSFODNN7EXAMPLE.", "key [redacted:aws-access-key-id]."},
		{"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEX§AMPLEKEY", "aws_secret_access_key = [redacted:secret-assignment]"},
		{"use ghp_§abcdefghijklmnopqrstuvwxyz0123456789", "use [redacted:github-pat]"},
		{"use ghp_§16C7e42F292c6912E7710c838347Ae178B4a", "use [redacted:github-pat]"},
		{"Authorization: Bearer abcDEF123456", "Authorization: Bearer [redacted:authorization-header]"},
		{`-H "Authorization: Basic dXNlcjpwYXNz"`, `-H "Authorization: Basic [redacted:authorization-header]"`},
		{"api_key = \"abc123def456ghi\"", "api_key = \"[redacted:secret-assignment]\""},
		{"CLIENT_SECRET=topsecret", "CLIENT_SECRET=[redacted:secret-assignment]"},
		{"docker login -u me -p hunter2", "docker login -u me -p [redacted:command-password]"},
		{"sudo docker login -u me \\\n\t-p 'hunter 2' r.io", "sudo docker login -u me \\\n\t-p '[redacted:command-password]' r.io"},
		{"ran `/usr/bin/podman login -u me -phunter2`", "ran `/usr/bin/podman login -u me -p[redacted:command-password]`"},
		{"helm registry login r.io -u me -p=hunter2; ls", "helm registry login r.io -u me -p=[redacted:command-password]; ls"},
		{"db:5432:app:ada:hunter2", "db:5432:app:ada:[redacted:connection-string]"},
		{"# all\n*:*:*:postgres:a b:c\nx", "# all\n*:*:*:postgres:[redacted:connection-string]\nx"},
		{`/run/a\:b:5433:app:ada:hunter2`, `/run/a\:b:5433:app:ada:[redacted:connection-string]`},
		{"echo 'pool:6432:*:ada:hunter2' > ~/.pgpass", "echo 'pool:6432:*:ada:[redacted:connection-string]' > ~/.pgpass"},
		{"put db:5432:app:ada:hunter2 into .pgpass", "put db:5432:app:ada:[redacted:connection-string] into .pgpass"},
		{"ada:$apr1$lZL6V/ci§$eIMz/iKDkbtys/uU7LEK00", "ada:$apr1$[redacted:password-hash]"},
		{"ada:$2y$05$abcdefghijklmnopqrstuu§XHlQxq3Q8rVtGSRLrBqhoHMhvnBXYEq", "ada:$2y$05$[redacted:password-hash]"},
		{"ada:$$2b$$12$$abcdefghijklmnopqrstuu§XHlQxq3Q8rVtGSRLrBqhoHMhvnBXYEq", "ada:$$2b$$12$$[redacted:password-hash]"},
		{"ada:{SHA}qUqP5cyxm6YcTAhz§05Hph5gvu9M=", "ada:{SHA}[redacted:password-hash]"},
		{"Set the password to hunter2, and log in", "Set the password to [redacted:password], and log in"},
		{"we changed its admin password to 'correct'", "we changed its admin password to '[redacted:password]'"},
		{"reset the password for the staging database to hunter2", "reset the password for the staging database to [redacted:password]"},
		{"set `DB_PASSWORD` to `hunter2`", "set `DB_PASSWORD` to `[redacted:password]`"},
		{"the password of user bob is hunter2", "the password of user bob is [redacted:password]"},
		{"the password is now p@ssword", "the password is now [redacted:password]"},
		{"the password defaults to hunter2", "the password defaults to [redacted:password]"},
		{"a <private>b</private> c", "a  c"},
	} {
		in := strings.ReplaceAll(c.in, "§", "")
		if got := Redact(in); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", in, got, c.want)
		}
	}
}

// TestKept shows what is no secret.
func TestKept(t *testing.T) {
	for _, text := range []string{
		"signingKey: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGtK3x9zQ7w2", `"signingKey": "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7"`,
		"password: string", "password string", "Password string `json:\"password\"`", "password: the user's own",
		"password must be 12 characters long", "The password is hashed with bcrypt.", "password = os.Getenv(\"PASSWORD\")",
		"password := r.FormValue(\"password\")", "Password: cfg.Password,", "password=${DB_PASSWORD}", "password: $PASSWORD",
		"password=<your password>", "password: ********", "password: [redacted:password]", "password: \"\"", "PASSWORD=",
		"password_file: /run/secrets/db", "PASSWORD_HASH=abc", "passwordless login", "if password == other {",
		"password: {{ .Values.password }}", "password=$(cat file)", "PWD=/home/x", "PASS: TestRedact (0.00s)", "pass: 10",
		"bypass=true", "tokens: 4096", "max_tokens = 100000", "token_count: 55", "secretName: db-credentials",
		"secretKeyRef: {name: db, key: password}", "key: value", "monkey: george", "author: Ann Example",
		"https://example.com/a:b@c", "http://localhost:8080/@scope/name", "git@github.com:a/b.git", "mailto:ann@example.com",
		"https://user@example.com/", "obs-engineer-29-1709035200000-a1b2c3", "CLR-029-004",
		"tokens: obs-engineer-29-1709035200000-a1b2c3", "key: dags/checks/review-0123456789abcdef-1",
		"nodeKey: 0123456789abcdef0123456789abcdef", "commit 9ff2059f0c3b1d2e4f5a69788796a5b4c3d2e1f0",
		"digest: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"id: 73082700-1f09-405b-80d0-3131bfd6272d", "github.com/foo/authlib v1.2.3 h1:Z9vdzQ0YkTqUQZbCVf2FBLZuF0nDcU8IyW8c9x8c1Ls=",
		"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "begins with -----BEGIN PRIVATE KEY-----",
		"das Passwort ist im Tresor", "Die Antwort: 42", "das Passwort ist 12 Zeichen lang", "le mot de passe est obligatoire",
		"the row is identified by 'id7'", "字符编码: utf8", "Das Kennwort wird nicht gespeichert.", "parola per parola",
		"a stray </private> stays", "mysql -u root -p db", "mysqld -port 3306", "password for the user: the same as before",
		"pass it on to the reviewer: they know", "the password of the user is never stored",
		"mkdir -p dir", "docker login && mkdir -p dir", "docker run -p 8080:80 app", "ssh -p 22 login", "the login -p 22",
		"docker login -u me --password-stdin", "docker login -u me -p $PASS", "docker login -u me -p \"${PASS}\"",
		"docker login -u me -p <password>", "docker login -p is not safe", "echo docker; login -p dir",
		"listen on 127.0.0.1:5432:5432", "image:5432:a:b", "main.go:5432:10: error: no", "main.go:5432:10:error:no",
		"2001:5432:ab:cd:ef", "cpe:2.3:a:vendor:product:1.0:*:*:*:*:*:*:*", "*:*:*:*:*", "db:5432:app:ada:<password>",
		"db:5432:app:ada:$PASSWORD", "host:port:db:user:password", "1.5432:543210:a:b:c:d",
		"{SHA} and $apr1$ begin a hash, $2y$10$ one of bcrypt", "$1 $2a$ {SHA}x", "SHA256: {SHA}",
		"set the password to expire after 90 days", "set the password to 90-day expiry", "set the password to a random value",
		"set the password to at least 12 characters", "set the password policy to 12chars", "set the password to base64",
		"we changed `password` to `passphrase`", "set `password` to `null`", "set the password to \"\"",
		"send the password to ops2", "compare the password to hash2", "the password is 12-characters long",
		"the password is sha256-hashed", "the password is base64 encoded", "the password is utf-8", "the password is checked",
		"the password for the app is kept in a vault", "the password is user1@example.com", "the password is **required**",
		"set the pass to 3", "they set it up. The password to login2 is theirs",
	} {
		if got := Redact(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
