// The functions of github.com/cloudhut/connect-client. Arguments and output are those of steps.py.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	connect "github.com/cloudhut/connect-client"
)

func step(label string, call func() (interface{}, error)) {
	line := map[string]interface{}{"call": label, "returned": nil}
	returned, err := call()
	if err != nil {
		line["raised"] = fmt.Sprintf("%T", err)
		line["text"] = err.Error()
	} else {
		line["returned"] = returned
	}
	text, _ := json.Marshal(line)
	fmt.Println(string(text))
}

func none(err error) (interface{}, error) { return nil, err }

func main() {
	ctx := context.Background()
	name, topic, file := os.Args[2], os.Args[3], os.Args[4]
	ghost := name + "-ghost"
	client := connect.NewClient(connect.WithHost(os.Args[1]), connect.WithTimeout(30*time.Second))
	config := func(more ...string) map[string]interface{} {
		found := map[string]interface{}{
			"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
			"tasks.max":       1,
			"file":            file,
			"topic":           topic,
		}
		for i := 0; i+1 < len(more); i += 2 {
			found[more[i]] = more[i+1]
		}
		return found
	}
	until := func(what string, probe func() bool) {
		for deadline := time.Now().Add(60 * time.Second); !probe(); time.Sleep(200 * time.Millisecond) {
			if time.Now().After(deadline) {
				fmt.Fprintln(os.Stderr, what, "was not reached within 60 s")
				os.Exit(1)
			}
		}
	}
	waitFor := func(state string) {
		until(state, func() bool {
			status, err := client.GetConnectorStatus(ctx, name)
			return err == nil && status.Connector.State == state && len(status.Tasks) == 1 && status.Tasks[0].State == state
		})
	}

	step("GetRoot", func() (interface{}, error) { return client.GetRoot(ctx) })
	step("CreateConnector", func() (interface{}, error) {
		return client.CreateConnector(ctx, connect.CreateConnectorRequest{Name: name, Config: config()})
	})
	waitFor("RUNNING")
	until("a topic in use", func() bool {
		topics, err := client.GetConnectorTopics(ctx, name)
		return err == nil && len(topics[name].Topics) == 1
	})
	step("CreateConnector again", func() (interface{}, error) {
		return client.CreateConnector(ctx, connect.CreateConnectorRequest{Name: name, Config: config()})
	})
	step("CreateConnector broken", func() (interface{}, error) {
		return client.CreateConnector(ctx, connect.CreateConnectorRequest{Name: ghost, Config: config("tasks.max", "0")})
	})
	step("ListConnectors", func() (interface{}, error) {
		names, err := client.ListConnectors(ctx)
		for _, one := range names {
			if one == name {
				return true, err
			}
		}
		return false, err
	})
	step("ListConnectorsExpanded", func() (interface{}, error) {
		found, err := client.ListConnectorsExpanded(ctx)
		return found[name], err
	})
	for _, one := range []string{name, ghost} {
		of := ""
		if one == ghost {
			of = " of nothing"
		}
		step("GetConnector"+of, func() (interface{}, error) { return client.GetConnector(ctx, one) })
		step("GetConnectorConfig"+of, func() (interface{}, error) { return client.GetConnectorConfig(ctx, one) })
		step("GetConnectorStatus"+of, func() (interface{}, error) { return client.GetConnectorStatus(ctx, one) })
		step("GetConnectorTopics"+of, func() (interface{}, error) { return client.GetConnectorTopics(ctx, one) })
	}
	step("PutConnectorConfig", func() (interface{}, error) {
		return client.PutConnectorConfig(ctx, name, connect.PutConnectorConfigOptions{Config: config("batch.size", "20")})
	})
	waitFor("RUNNING")
	step("PauseConnector", func() (interface{}, error) { return none(client.PauseConnector(ctx, name)) })
	waitFor("PAUSED")
	step("PauseConnector of nothing", func() (interface{}, error) { return none(client.PauseConnector(ctx, ghost)) })
	step("ResumeConnector", func() (interface{}, error) { return none(client.ResumeConnector(ctx, name)) })
	waitFor("RUNNING")
	step("RestartConnector", func() (interface{}, error) {
		return none(client.RestartConnector(ctx, name, connect.RestartConnectorOptions{IncludeTasks: true}))
	})
	waitFor("RUNNING")
	step("RestartConnector of nothing", func() (interface{}, error) {
		return none(client.RestartConnector(ctx, ghost, connect.RestartConnectorOptions{}))
	})
	step("RestartConnectorTask", func() (interface{}, error) { return none(client.RestartConnectorTask(ctx, name, 0)) })
	waitFor("RUNNING")
	step("RestartConnectorTask of nothing", func() (interface{}, error) { return none(client.RestartConnectorTask(ctx, name, 5)) })
	step("ResetConnectorTopics", func() (interface{}, error) { return none(client.ResetConnectorTopics(ctx, name)) })
	step("GetConnectorPlugins", func() (interface{}, error) { return client.GetConnectorPlugins(ctx) })
	step("PutValidateConnectorConfig", func() (interface{}, error) {
		return client.PutValidateConnectorConfig(ctx, "FileStreamSource", connect.ValidateConnectorConfigOptions{Config: config("name", name, "tasks.max", "x")})
	})
	step("StopConnector", func() (interface{}, error) { return none(client.StopConnector(ctx, name)) })
	until("STOPPED", func() bool {
		status, err := client.GetConnectorStatus(ctx, name)
		return err == nil && status.Connector.State == "STOPPED"
	})
	step("DeleteConnector", func() (interface{}, error) { return none(client.DeleteConnector(ctx, name)) })
	step("DeleteConnector again", func() (interface{}, error) { return none(client.DeleteConnector(ctx, name)) })
}
